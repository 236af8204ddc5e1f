import { expect, it } from 'vitest'
import { unsupportedKeyMessage } from './known-keys.ts'

it.each([
  [['mcp'], "agentgateway's mcp is not supported yet in this version"],
  [['llm', 'policies', 'extProc'], "agentgateway's extProc is not supported"],
  [['gateways', 'my-gateway', 'extProc'], "agentgateway's extProc is not supported"],
  [['gateways', 'my gateway', 'listeners', 0, 'extProc'], "agentgateway's extProc is not supported"],
  [
    ['routes', 0, 'backends', 1, 'ai', 'provider', 'bedrock'],
    "agentgateway's bedrock is not supported yet in this version",
  ],
  [
    ['backends', 0, 'ai', 'groups', 0, 'providers', 0, 'provider', 'copilot'],
    "agentgateway's copilot is not supported",
  ],
  [['routes', 0, 'policies', 'ai', 'prompts'], "agentgateway's prompts is not supported"],
  [
    ['llm', 'models', 3, 'params', 'hostOverride'],
    "agentgateway's hostOverride is not supported: use baseUrl",
  ],
])('knows %j', (path, message) => {
  expect(unsupportedKeyMessage(path)).toBe(message)
})

it.each([
  [['extProc']],
  [['llm', 'models', 0, 'extProc']],
  [['nonsense']],
  [['llm', 'toString']],
  [['toString', 'x']],
  [[]],
])('has nothing to say of %j', (path: (string | number)[]) => {
  expect(unsupportedKeyMessage(path)).toBeUndefined()
})
