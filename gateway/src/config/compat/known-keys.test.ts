import { expect, it } from 'vitest'
import type { Path } from '../../schema/path.ts'
import { alternativesOf, childShapes, type Shape, shapeOf } from '../../schema/shape.ts'
import { configSchema } from '../schema.ts'
import { agentgatewayObjects } from './agentgateway-keys.ts'
import { unsupportedKeyMessage } from './known-keys.ts'

const root = shapeOf(configSchema)

it.each([
  [['services'], "agentgateway's services is not supported: use backends with endpoints"],
  [
    ['routes', 0, 'backends', 0, 'service'],
    "agentgateway's service is not supported: use host, or a backend with endpoints",
  ],
  [
    ['binds', 0, 'listeners', 0, 'routes', 0, 'backends', 0, 'aws'],
    "agentgateway's aws is not supported: use host, such as bedrock-agentcore.us-east-1.amazonaws.com:443, with backendAuth.aws",
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

/** Messages of the keys of agentgateway that the schema lacks. */
function* missing(name: string, path: Path, shapes: readonly Shape[], seen: Set<string>): Generator<string> {
  const id = `${name} ${shapes.map((shape) => (shape.kind === 'object' ? [...shape.fields.keys()] : shape.kind)).join()}`
  if (seen.has(id)) return
  seen.add(id)
  const text = new RegExp(`^${name}=(.*(?:\\n .*)*)`, 'm').exec(agentgatewayObjects)?.[1] ?? ''
  for (const item of text.trim().split(/\s+/)) {
    const [key = '', below] = item.split(':')
    const found = childShapes(shapes, key)
    if (found.length === 0 && key !== '*') {
      yield unsupportedKeyMessage([...path, key], root) ?? `${[...path, key].join('.')} is unknown`
      continue
    }
    if (found.every(({ kind }) => kind === 'any')) continue
    const items = found.flatMap((shape) => (shape.kind === 'list' ? alternativesOf(shape.item) : [shape]))
    for (const next of below?.split('|') ?? []) yield* missing(next, [...path, key], items, seen)
  }
}

it('names the nearest setting for every key of agentgateway that is not supported', () => {
  const messages = [...missing('Root', [], alternativesOf(root), new Set())]
  expect(messages.length).toBeGreaterThan(50)
  const vague = messages.filter((message) => !/ is not supported: | is only valid on /.test(message))
  expect(vague).toEqual([])
})
