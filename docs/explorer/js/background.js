"use strict";

/*
 * Runs simulations off the page's own thread. A newer request makes an older answer worthless: at most one request
 * is under way and at most one waits, so moving a slider never builds a queue.
 */
var Background = (() => {
  function listen(simulation) {
    self.onmessage = ({ data }) => {
      const started = performance.now();
      const runs = data.runs.map((run) => simulation.simulate(run));
      self.postMessage({ runs, milliseconds: performance.now() - started });
    };
  }

  function start(onResult) {
    const source = `(${listen})((${makeSimulation})());`;
    const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    const worker = new Worker(address);
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
    return { request: (runs) => (busy ? (waiting = { runs }) : send({ runs })) };
  }

  return { start };
})();
