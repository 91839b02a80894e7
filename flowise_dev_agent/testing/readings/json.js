// Reads a text as Flowise 3.1.4 reads JSON: JSON5, then with its repairs. No two braces of a kind stand side by side in code for
// Flowise: it takes them for a variable.
const isJson5 = (text) => {
  let at = 0;
  const take = (pattern) => {
    pattern.lastIndex = at;
    const found = pattern.exec(text);
    if (found) at = pattern.lastIndex;
    return found;
  };
  const gap = () => take(/(?:\s|\/\/[^\n\r]*|\/\*[\s\S]*?\*\/)*/y);
  const escape = '\\\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|\\r\\n|0(?!\\d)|[^xu\\d])';
  const string = new RegExp(`"(?:[^"\\\\\\n\\r]|${escape})*"|'(?:[^'\\\\\\n\\r]|${escape})*'`, 'y');
  const number = /[+-]?(?:Infinity|NaN|0[xX][0-9a-fA-F]+|(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)(?![\w$.])/y;
  const items = (end, item) => {
    for (;;) {
      gap();
      if (take(end)) return true;
      if (!item()) return false;
      gap();
      if (!take(/,/y)) return Boolean(take(end));
    }
  };
  const pair = () => {
    if (!take(string) && !take(/[\p{L}_$][\p{L}\p{N}_$]*/uy)) return false;
    gap();
    return Boolean(take(/:/y)) && value();
  };
  const value = () => {
    gap();
    if (take(/\{/y)) return items(/\}/y, pair);
    if (take(/\[/y)) return items(/\]/y, value);
    return Boolean(take(string) || take(/(?:null|true|false)(?![\w$])/y) || take(number));
  };
  const whole = value();
  gap();
  return whole && at === text.length;
};
const isReadable = (text) => {
  const plain = text.replace(/\\(?=[\[\]{}])/g, '');
  const bare = plain.replace(/'/g, '"').replace(/,(\s*[}\]])/g, '$1');
  const repaired = bare.replace(/\/\/.*$/gm, '').replace(/\/\*[\s\S]*?\*\//g, '');
  return [text, repaired, plain.replace(/,(\s*[}\]])/g, '$1').trim()].some(isJson5);
};
