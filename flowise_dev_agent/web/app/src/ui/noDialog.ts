/** In place of the dialog that cmdk brings: the lists of the page are in the browser's own. */
const none = () => null;

export { none as Content, none as Overlay, none as Portal, none as Root };
