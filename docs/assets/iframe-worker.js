// The theme searches in a worker. Browsers start no worker for a page that was opened as a file; there, a hidden frame runs the script.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inner = frame.contentWindow;
      inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", {data}));
      inner.importScripts = async (...paths) => {
        for (const path of paths) await load(inner, path);
      };
      this.inner = inner;
      this.ready = load(inner, url);
    }

    postMessage(data) {
      this.ready.then(() => this.inner.dispatchEvent(new MessageEvent("message", {data})));
    }
  };

  function load(inner, path) {
    return new Promise((loaded, failed) => {
      const script = inner.document.createElement("script");
      Object.assign(script, {src: new URL(path, location).href, onload: loaded, onerror: failed});
      inner.document.head.append(script);
    });
  }
}
