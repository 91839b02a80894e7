// Settings of a step that runs another flow.
if ($overrideConfig.startsWith('{') && $overrideConfig.endsWith('}') && !isReadable($overrideConfig)) {
  throw new Error('Invalid JSON in executeFlowOverrideConfig: ' + $overrideConfig.slice(0, 200));
}
if ($baseURL) new (require('url').URL)($baseURL);
