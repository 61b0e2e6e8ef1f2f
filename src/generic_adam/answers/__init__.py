"""Answers as people and programs read them.

Answers are typed parts (`generic_adam.parts.Part`) that say nothing in words. Here they become text:

    words     part -> lines or a phrase: the dispatch, with one module for each package of parts
    layout    lines -> at most ten at a width: what weighs least is shortened or left out first
    json      part -> plain types, with the version of their form
    terminal  text, tables and colour on a console; figures and plots draw
"""
