import { expect, it } from 'vitest'
import { shapeOf } from '../../schema/shape.ts'
import { configSchema } from '../schema.ts'
import { unsupportedKeyMessage } from './known-keys.ts'

const root = shapeOf(configSchema)

it.each([
  [['services'], "agentgateway's services is not supported: use backends with endpoints"],
  [
    ['routes', 0, 'backends', 0, 'service'],
    "agentgateway's service is not supported: use host, or a backend with endpoints",
  ],
  [
    ['binds', 0, 'listeners', 0, 'routes', 0, 'policies', 'backendAuth', 'aws'],
    "agentgateway's aws is not supported yet in this version",
  ],
  [
    ['backends', 0, 'ai', 'groups', 0, 'providers', 0, 'provider', 'copilot'],
    "agentgateway's copilot is not supported yet in this version",
  ],
  [
    ['routes', 3, 'backends', 0, 'service'],
    "agentgateway's service is not supported: use host, or a backend with endpoints",
  ],
])('reports %j as a key of agentgateway', (path, message) => {
  expect(unsupportedKeyMessage(path, root)).toBe(message)
})

it.each([
  [['llm', 'policies', 'retry'], 'retry is only valid on routes and mcp'],
  [['gateways', 'shared', 'urlRewrite'], 'urlRewrite is only valid on routes and mcp'],
  [['gateways', 'shared', 'listeners', 0, 'timeout'], 'timeout is only valid on routes and mcp'],
  [['binds', 0, 'listeners', 0, 'policies', 'timeout'], 'timeout is only valid on routes and mcp'],
  [
    ['llm', 'policies', 'mcpAuthorization'],
    'mcpAuthorization is only valid on routes, backends of routes, named backends and mcp',
  ],
  [
    ['routes', 0, 'policies', 'health'],
    'health is only valid on backends of routes, named backends and MCP targets',
  ],
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
