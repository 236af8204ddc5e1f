import { describe, expect, it } from 'vitest'
import { fixtureContext, fixtureExchange } from '../../../test/fixtures/pipeline.ts'
import type { McpItemKind } from '../../pipeline/mcp/mcp-item.ts'
import { compileMessageLimits } from './message-limits.ts'

const tool = 'has(mcp.tool) ? mcp.tool.name : ""'
const prompt = 'has(mcp.prompt) ? mcp.prompt.name : ""'
const kinds: readonly (McpItemKind | undefined)[] = ['tool', 'prompt', 'resource', undefined]

/** Kinds of messages of which a second one exceeds a limit of one request with this key. */
function countedBy(key: string): string[] {
  return kinds
    .filter((kind) => {
      const check = compileMessageLimits(
        { local: [{ requests: 1, unit: 'Hours', key }], remote: undefined, scope: 'mcp' },
        fixtureContext(),
      )
      const item = kind && { kind, name: 'x' }
      const message = { method: 'm', target: 't', item, params: undefined, text: '{}' }
      const mcp = { method: 'm', ...(kind && { [kind]: { name: 'x', target: 't' } }) }
      const send = () => check?.onRequest?.(fixtureExchange({}, { mcp }), message)
      send()
      return send() !== undefined
    })
    .map(String)
}

describe('a limit counts', () => {
  it.each([
    [tool, ['tool']],
    [prompt, ['prompt']],
    [`(${tool}) + (${prompt})`, ['tool', 'prompt']],
    ['mcp.method', ['tool', 'prompt', 'resource', 'undefined']],
  ])('with the key %s uses of %j', (key, counted) => {
    expect(countedBy(key)).toEqual(counted)
  })
})
