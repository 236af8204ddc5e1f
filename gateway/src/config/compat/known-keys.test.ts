import { expect, it } from 'vitest'
import { shapeOf } from '../../schema/shape.ts'
import { configSchema } from '../schema.ts'
import { unsupportedKeyMessage } from './known-keys.ts'

const root = shapeOf(configSchema)

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
])('reports %j as a key of agentgateway', (path, message) => {
  expect(unsupportedKeyMessage(path, root)).toBe(message)
})

it.each([
  [['llm', 'policies', 'retry'], 'retry is only valid on routes'],
  [['gateways', 'shared', 'urlRewrite'], 'urlRewrite is only valid on routes'],
  [['gateways', 'shared', 'listeners', 0, 'timeout'], 'timeout is only valid on routes'],
  [['binds', 0, 'listeners', 0, 'policies', 'timeout'], 'timeout is only valid on routes'],
  [['llm', 'policies', 'mcpAuthorization'], 'mcpAuthorization is only valid on routes and mcp'],
  [['routes', 0, 'policies', 'health'], 'health is only valid on backends of routes and named backends'],
  [['binds', 0, 'listeners', 0, 'routes', 0, 'policies', 'guardrails'], 'guardrails is only valid on llm'],
])('reports the valid places of %j', (path: (string | number)[], message) => {
  expect(unsupportedKeyMessage(path, root)).toBe(message)
})

it.each([
  [['extProc']],
  [['llm', 'models', 0, 'extProc']],
  [['nonsense']],
  [['llm', 'toString']],
  [['toString', 'x']],
  [[]],
])('returns undefined for %j', (path: (string | number)[]) => {
  expect(unsupportedKeyMessage(path, root)).toBeUndefined()
})
