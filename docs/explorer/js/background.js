"use strict";

/*
 * Computes off the page's own thread. A newer request makes an older answer worthless: at most one request is under
 * way and at most one waits, so moving a slider never builds a queue.
 */
var Background = (() => {
  function listen(tool, name) {
    self.onmessage = ({ data }) => {
      const started = performance.now();
      const results = data.map((one) => tool[name](one));
      self.postMessage({ results, milliseconds: performance.now() - started });
    };
  }

  /** `make` returns a tool and uses nothing from outside its own text; the worker calls its function `name`. */
  function start(make, name, onResult) {
    const source = `(${listen})((${make})(), ${JSON.stringify(name)});`;
    const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    const worker = new NativeWorker(address);
    let busy = false;
    let waiting = null;
    const send = (request) => {
      busy = true;
      worker.postMessage(request);
    };
    worker.onmessage = ({ data }) => {
      busy = false;
      if (waiting) {
        const request = waiting;
        waiting = null;
        send(request);
      } else {
        onResult(data);
      }
    };
    return { request: (choices) => (busy ? (waiting = choices) : send(choices)) };
  }

  return { start };
})();
