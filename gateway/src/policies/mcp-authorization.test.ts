import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fixtureContext, fixtureExchange } from '../../test/fixtures/pipeline.ts'
import type { Facts } from '../pipeline/exchange.ts'
import type { McpItem } from '../pipeline/mcp/mcp-item.ts'
import { createRecording, type Explain } from '../pipeline/recording/recording.ts'
import { check } from '../schema/check.ts'
import {
  checkMcpAuthorization,
  compileMcpAuthorization,
  type McpAuthorizationConfig,
  mcpAuthorizationSchema,
} from './mcp-authorization.ts'

type Rules = McpAuthorizationConfig['rules']

const echo: McpItem = { method: 'tools/call', kind: 'tool', name: 'echo', target: 'everything' }
const write: McpItem = { ...echo, name: 'write', arguments: { path: '/tmp/x' } }
const prompt: McpItem = { method: 'prompts/get', kind: 'prompt', name: 'summary', target: 'everything' }
const resource: McpItem = { method: 'resources/read', kind: 'resource', name: 'file:///a', target: 'files' }
const all = [echo, write, prompt, resource]
const ada = { jwt: { sub: 'ada', roles: ['reader'] } }

/** Names of listed and of usable items. */
function permitted(rules: Rules, facts: Partial<Facts> = ada, items: readonly McpItem[] = all) {
  const { permits } = compileMcpAuthorization({ rules }, fixtureContext())
  const exchange = fixtureExchange({}, facts)
  const names = (at: 'list' | 'call') =>
    items.filter((item) => permits(exchange, item, at)).map((item) => item.name)
  return { listed: names('list'), usable: names('call') }
}

function both(...names: string[]) {
  return { listed: names, usable: names }
}

const everything = both('echo', 'write', 'summary', 'file:///a')

describe('rules for tools, prompts and resources', () => {
  it('permit everything if empty', () => expect(permitted([])).toEqual(everything))

  it('of kind allow refuse all other items', () => {
    expect(permitted(['mcp.tool.name == "echo"'])).toEqual(both('echo'))
    expect(permitted(['mcp.tool.name == "echo"', { allow: 'mcp.prompt.target == "everything"' }])).toEqual(
      both('echo', 'summary'),
    )
    expect(permitted(['mcp.resource.name.startsWith("file:")'])).toEqual(both('file:///a'))
  })

  it('may use the facts of the client', () => {
    expect(permitted(['"reader" in jwt.roles'])).toEqual(everything)
    expect(permitted(['"writer" in jwt.roles'])).toEqual(both())
    expect(permitted(['request.path == "/v1/chat/completions" && source.port == 40000'])).toEqual(everything)
    expect(permitted(['apiKey.id == "k"'], { apiKey: { id: 'k' } })).toEqual(everything)
  })

  it('of kind deny take precedence over allow', () => {
    expect(permitted(['true', { deny: 'has(mcp.tool) && mcp.tool.name == "write"' }])).toEqual(
      both('echo', 'summary', 'file:///a'),
    )
  })

  it('of kind require must all be true', () => {
    expect(permitted([{ require: 'has(mcp.tool)' }, { require: '"reader" in jwt.roles' }])).toEqual(
      both('echo', 'write'),
    )
  })

  it('refuse if evaluation fails', () => {
    expect(permitted([{ deny: 'mcp.tool.name == "write"' }])).toEqual(both('echo'))
    expect(permitted([{ require: 'mcp.tool.name != "write"' }])).toEqual(both('echo'))
    expect(permitted(['"admin" in jwt.tenants["T"].roles'])).toEqual(both())
    expect(permitted(['jwt.sub == "ada"'], {})).toEqual(both())
    expect(permitted(['mcp.tool.name'])).toEqual(both())
  })

  it('receive the method of use at list time', () => {
    expect(
      permitted(['mcp.method == "tools/call"'], ada, [{ ...echo, method: 'tools/list' }]).listed,
    ).toEqual(['echo'])
  })

  it('are reported and counted as denial reasons, for calls only', () => {
    const context = fixtureContext()
    const { permits } = compileMcpAuthorization({ rules: [{ deny: 'true' }] }, context)
    const exchange = fixtureExchange()
    permits(exchange, echo, 'list')
    expect(exchange.log.refusedBy).toBeUndefined()
    permits(exchange, echo, 'call')
    expect(exchange.log.refusedBy).toBe('mcp-authorization: deny rule 1')
    expect(context.decisions.get('mcpAuthorization: deny rule 1 refused')).toBe(1)
  })
})

describe('rules that read arguments', () => {
  const isTmp = 'mcp.tool.arguments.path.startsWith("/tmp/")'

  it.each<[string, Rules]>([
    ['allow', [`mcp.tool.name == "write" && ${isTmp}`]],
    ['allow, arguments first', [`${isTmp} && mcp.tool.name == "write"`]],
    ['require', [{ require: isTmp }]],
    ['deny', [{ deny: `!${isTmp}` }]],
  ])('count as satisfied in lists, and decide on calls: %s', (_, rules) => {
    const outside = { ...write, arguments: { path: '/etc/passwd' } }
    const { listed } = permitted(rules, ada, [write])
    expect(listed).toEqual(['write'])
    expect(permitted(rules, ada, [write]).usable).toEqual(['write'])
    expect(permitted(rules, ada, [outside]).usable).toEqual([])
    expect(permitted(rules, ada, [{ ...write, arguments: undefined }]).usable).toEqual([])
  })

  it('count as satisfied in lists if they test the presence of arguments', () => {
    const outcome = { listed: ['echo', 'write'], usable: ['write'] }
    expect(permitted(['has(mcp.tool.arguments.path)'], ada, [echo, write])).toEqual(outcome)
    expect(permitted([{ require: 'has(mcp.tool.arguments.path)' }], ada, [echo, write])).toEqual(outcome)
  })

  it('hide items that they refuse for all arguments', () => {
    const rules = [`mcp.tool.name == "write" && ${isTmp}`]
    expect(permitted(rules, ada, [echo, write]).listed).toEqual(['write'])
    expect(permitted([{ deny: 'jwt.sub == "ada"' }, { require: isTmp }], ada, [write]).listed).toEqual([])
  })

  it('receive an empty object for a call without arguments', () => {
    expect(permitted(['!has(mcp.tool.arguments.path)'], ada, [echo]).usable).toEqual(['echo'])
  })

  it('never hide an item that a call with some arguments may use', () => {
    const rule = fc.constantFrom(
      'mcp.tool.arguments.a == 1',
      '!has(mcp.tool.arguments.a)',
      'mcp.tool.name == "echo"',
      'has(mcp.tool.arguments.a) && mcp.tool.arguments.a == 2',
      'mcp.tool.arguments.a == 1 || jwt.sub == "ada"',
      'size(mcp.tool.arguments) == 0',
      'mcp.tool == {"name": "echo"}',
    )
    const rules = fc.array(
      fc.oneof(
        rule,
        rule.map((deny) => ({ deny })),
        rule.map((require) => ({ require })),
      ),
      { maxLength: 3 },
    )
    const given = fc.constantFrom(undefined, {}, { a: 1 }, { a: 2 }, { a: 'x' }, { b: 1 })
    fc.assert(
      fc.property(rules, given, (config, values) => {
        const { listed, usable } = permitted(config, ada, [{ ...echo, arguments: values }])
        if (usable.length > 0) expect(listed).toEqual(usable)
      }),
    )
  })
})

describe('methods', () => {
  function mayUse(rules: Rules, method: string, facts: Partial<Facts> = ada): boolean {
    return compileMcpAuthorization({ rules }, fixtureContext()).permitsMethod(
      fixtureExchange({}, facts),
      method,
    )
  }

  it('that are known are permitted by rules on items', () => {
    for (const method of ['initialize', 'ping', 'tools/list', 'notifications/initialized', 'tools/call']) {
      expect(
        mayUse(['mcp.tool.name == "echo"', { deny: 'mcp.tool.name == "x"' }, { require: 'false' }], method),
      ).toBe(true)
    }
  })

  it('that are unknown are denied if rules exist', () => {
    expect(mayUse([], 'vendor/wipe')).toBe(true)
    expect(mayUse(['true'], 'vendor/wipe')).toBe(false)
    expect(mayUse([{ deny: 'mcp.method == "x"' }], 'vendor/wipe')).toBe(false)
    expect(mayUse([{ require: '"reader" in jwt.roles' }], 'vendor/wipe')).toBe(false)
  })

  it('that are unknown may be allowed by name', () => {
    const rules: Rules = ['mcp.tool.name == "echo"', 'mcp.method.startsWith("tasks/")']
    expect(mayUse(rules, 'tasks/get')).toBe(true)
    expect(mayUse(rules, 'vendor/wipe')).toBe(false)
    expect(mayUse([...rules, { require: '"writer" in jwt.roles' }], 'tasks/get')).toBe(false)
    expect(mayUse([...rules, { deny: 'jwt.sub == "ada"' }], 'tasks/get')).toBe(false)
  })

  it('that are known may be denied by name', () => {
    expect(mayUse([{ deny: 'mcp.method == "logging/setLevel"' }], 'logging/setLevel')).toBe(false)
    expect(mayUse([{ deny: 'mcp.method == "logging/setLevel"' }], 'ping')).toBe(true)
  })
})

describe('checking', () => {
  it('reports rules that do not compile or that reference other variables', () => {
    const config: McpAuthorizationConfig = {
      rules: ['1 +', { deny: 'llmRequest.model == "x"' }, { require: 'mcp.tool.name == "echo"' }],
    }
    expect(check(mcpAuthorizationSchema, config).kind).toBe('valid')
    const paths: string[] = []
    checkMcpAuthorization(config, (path) => paths.push(path.join('.')))
    expect(paths).toEqual(['rules.0', 'rules.1.deny'])
  })
})

describe('the recording of a call', () => {
  function recorded(explain: Explain, item: McpItem) {
    const rules = [{ deny: 'has(mcp.tool) && mcp.tool.name == "write"' }, 'true']
    const { permits, permitsMethod } = compileMcpAuthorization({ rules }, fixtureContext())
    const exchange = fixtureExchange({}, ada)
    exchange.recording = createRecording(explain)
    permits(exchange, item, 'list')
    permits(exchange, item, 'call')
    permitsMethod(exchange, 'vendor/unknown')
    return exchange.recording.items
  }

  it('has the rules of denied items, without arguments', () => {
    const items = recorded('errors', write)
    expect(items).toMatchObject([
      {
        rules: 'mcpAuthorization',
        item: { kind: 'tool', name: 'write', target: 'everything' },
        permitted: false,
        results: [
          { rule: 'deny rule 1', value: true, refuses: true },
          { rule: 'allow rule 2', value: true, refuses: false },
        ],
      },
      { item: { kind: 'method', name: 'vendor/unknown' }, permitted: false },
    ])
    expect(JSON.stringify(items)).not.toContain('/tmp/x')
  })

  it('has the rules of permitted items if all requests are explained', () => {
    expect(recorded('errors', echo)?.[0]).toMatchObject({ permitted: true, results: undefined })
    expect(recorded('all', echo)?.[0]?.results).toHaveLength(2)
    expect(recorded('off', write)).toBeUndefined()
  })

  it('has URIs without query', () => {
    const uri = { ...resource, name: 'https://files.test/a?token=secret#x' }
    expect(recorded('errors', uri)?.[0]?.item.name).toBe('https://files.test/a')
  })
})
