// Settings of an HTTP step.
const parsed = $bodyType === 'json' || $bodyType === 'xWwwFormUrlencoded';
if ($method !== 'GET' && $body && parsed && typeof $body === 'string' && !isReadable($body)) {
  throw new Error('Invalid JSON format in body. Original error: ' + $body.slice(0, 200));
}
// An address that is still to be filled in is told elsewhere.
if (!String($url).startsWith('[PLACEHOLDER')) {
  const { URL } = require('url');
  const { protocol } = new URL($url);
  if (protocol !== 'http:' && protocol !== 'https:') throw new Error('Unsupported protocol ' + protocol);
}
for (const { key, value } of Array.isArray($headers) ? $headers : []) {
  if (key && value && !/^[\w!#$%&'*+.^`|~-]+$/.test(key)) throw new Error(`Header name must be a valid HTTP token ["${key}"]`);
  if (key && value && /[^\t\x20-\x7e\x80-\xff]/.test(value)) throw new Error(`Invalid character in header content ["${key}"]`);
}
