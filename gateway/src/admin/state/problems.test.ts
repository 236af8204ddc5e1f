import { describe, expect, it } from 'vitest'
import type { Config } from '../../config/schema.ts'
import { recordCounts } from './counts.ts'
import { exposureProblems } from './exposure.ts'
import { parseMistakes } from './mistakes.ts'
import { findProblems, type ProblemFacts } from './problems.ts'

const quiet: ProblemFacts = {
  config: undefined,
  file: {},
  errors: [],
  needsRestart: false,
  storage: { mode: 'file' },
  ledger: undefined,
  conditions: [],
  silentPlanes: 0,
}

function codes(facts: Partial<ProblemFacts>): string[] {
  return findProblems({ ...quiet, ...facts }).map(({ code }) => code)
}

const ledger = {
  ...{ connected: true, lastError: undefined, queuedRows: 0, spoolBytes: 0, spoolError: undefined },
  ...{ written: 1, retried: 0, droppedDetails: 0, droppedRows: 0, damaged: 0 },
  ...{ database: 'sqlite' as const, spool: '/spool' },
}

describe('problems', () => {
  it('are absent in a healthy process', () => {
    expect(findProblems({ ...quiet, ledger })).toEqual([])
  })

  it('have the mistakes of a refused file, errors first', () => {
    const message = '/etc/c.yaml:3:5: llm.models[0].name: must not be empty\n/etc/c.yaml: is not valid YAML'
    const since = '2026-01-01T00:00:00.000Z'
    const problems = findProblems({
      ...quiet,
      needsRestart: true,
      errors: [{ source: 'file', message, since }],
    })
    expect(problems).toMatchObject([
      {
        code: 'configuration_refused',
        since,
        link: '/tools/configuration',
        mistakes: [
          { line: 3, column: 5, path: 'llm.models[0].name', message: 'must not be empty' },
          { message: '/etc/c.yaml: is not valid YAML' },
        ],
      },
      { code: 'restart_needed', severity: 'warning' },
    ])
  })

  it('have stable codes', () => {
    expect(
      codes({ errors: [{ source: 'file', message: 'cannot listen on [::]:80: not allowed', since: '' }] }),
    ).toEqual(['address_unavailable'])
    const database = { state: 'lost' as const, generation: 1, records: 0, problems: [], shadowed: [] }
    expect(codes({ storage: { mode: 'hybrid', database } })).toEqual(['database_unavailable'])
    expect(codes({ ledger: { ...ledger, connected: false, droppedRows: 2 } })).toEqual([
      'ledger_unavailable',
      'ledger_dropped',
    ])
    expect(codes({ silentPlanes: 1 })).toEqual(['data_plane_silent'])
    expect(codes({ file: { llm: { policies: { apiKey: { keys: [{ key: 'tg-1' }] } } } } })).toEqual([
      'keys_in_plain_text',
    ])
    expect(
      codes({
        conditions: [
          { kind: 'destination', subject: 'a', message: 'ejected', since: 0 },
          { kind: 'identity', subject: 'https://id.test', message: 'refused', since: 0 },
        ],
      }),
    ).toEqual(['identity_provider_unreachable', 'target_ejected'])
  })

  it('mask credentials in the address of an identity provider', () => {
    const subject = 'https://ada:swordfish@id.test/keys?token=swordfish'
    const conditions = [{ kind: 'identity' as const, subject, message: 'refused', since: 0 }]
    const text = JSON.stringify(findProblems({ ...quiet, conditions }))
    expect(text).toContain('id.test/keys')
    expect(text).not.toContain('swordfish')
  })
})

describe('exposureProblems', () => {
  const open = (config: object) => exposureProblems(config as Config).map(({ code }) => code)

  it('reports sections that every client can use', () => {
    expect(open({ llm: {}, mcp: {} })).toEqual(['llm_without_login', 'mcp_without_login'])
  })

  it('accepts loopback addresses and required credentials', () => {
    expect(open({ config: { bindAddress: '127.0.0.1' }, llm: {} })).toEqual([])
    expect(open({ llm: { policies: { apiKey: { keys: [] } } } })).toEqual([])
    expect(open({ llm: { policies: { apiKey: { keys: [], mode: 'optional' } } } })).toEqual([
      'llm_without_login',
    ])
    expect(open({ gateways: { default: { port: 80, jwtAuth: {} } }, llm: {} })).toEqual([])
    expect(
      open({ gateways: { default: { port: 80, listeners: [{ name: 'a', jwtAuth: {} }, {}] } }, llm: {} }),
    ).toEqual(['llm_without_login'])
  })

  it('reports an admin address for other machines', () => {
    expect(open({ config: { adminAddr: '0.0.0.0:15000' } })).toEqual(['admin_exposed'])
  })
})

describe('parseMistakes', () => {
  it.each([
    ['c.yaml:1:2: a.b[0]["x y"].c: must be a text', { line: 1, column: 2, path: 'a.b[0]["x y"].c' }],
    ['a.b: must be: a text', { path: 'a.b', message: 'must be: a text' }],
    ['cannot listen on [::]:80: not allowed', { message: 'cannot listen on [::]:80: not allowed' }],
    ['C:\\c.yaml:10:2: must be a text', { line: 10, column: 2, message: 'must be a text' }],
  ])('parses %s', (text, expected) => {
    expect(parseMistakes(text)).toMatchObject([expected])
  })

  it('is fast on hostile text', () => {
    const started = performance.now()
    parseMistakes(`${'a.'.repeat(5_000)}!\n${'["\\'.repeat(3_000)}`)
    parseMistakes(Array.from({ length: 1_000 }, () => `a${'[0]'.repeat(600)}`).join('\n'))
    expect(performance.now() - started).toBeLessThan(2_000)
  })
})

it('counts records by kind', () => {
  expect(
    recordCounts({
      llm: { models: [{}, {}], policies: { apiKey: { keys: [{}] }, cors: {}, jwtAuth: undefined } },
      mcp: { targets: [], port: 1 },
      gateways: { a: {} },
    }),
  ).toMatchObject({
    'llm.model': 2,
    'llm.apiKey': 1,
    'llm.policy': 2,
    'mcp.target': 0,
    'mcp.settings': 1,
    'traffic.gateway': 1,
    'traffic.route': 0,
    modelCatalog: 0,
  })
})
