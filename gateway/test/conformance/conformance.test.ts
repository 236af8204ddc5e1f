import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { endAfter } from '../support/cleanup.ts'
import { startGateway } from '../support/gateway.ts'
import { type Outcome, passes, runSuite } from './suite.ts'
import { serveHttp } from './target/http.ts'
import { serveModern } from './target/modern.ts'

// The official conformance suite, against the conformance target itself and through the gateway.
// UPDATE_GOLDEN=1 writes the table of docs/mcp-conformance.md.

const ways = ['direct', 'HTTP target', 'stdio target', 'federated'] as const
type Way = (typeof ways)[number]

/**
 * With several targets a resource's URI carries its target, independent of `prefixMode`; the suite requests
 * it without.
 */
const renamed: readonly string[] = [
  'resources-read-text',
  'resources-read-binary',
  'resources-templates-read',
  'resources-subscribe',
  'resources-unsubscribe',
]

const program = join(import.meta.dirname, 'target', 'main.ts')
const idle = join(import.meta.dirname, '..', 'support', 'mcp-program.mjs')
const document = join(import.meta.dirname, '..', '..', '..', 'docs', 'mcp-conformance.md')
const outcomes = new Map<Way, Map<string, Outcome>>()
const modern = {
  direct: new Map<string, Outcome>(),
  through: new Map<string, Outcome>(),
  federated: new Map<string, Outcome>(),
}

beforeAll(async () => {
  const direct = await serveHttp()
  endAfter('file', direct.close)
  const http = { name: 'conformance', mcp: { host: direct.url } }
  const stdio = { name: 'conformance', stdio: { cmd: process.execPath, args: [program, 'stdio'] } }
  const toolsOnly = {
    name: 'other',
    stdio: { cmd: process.execPath, args: [idle, '--name', 'other', '--tools-only'] },
  }
  outcomes.set('direct', await runSuite(direct.url, '2025-11-25'))
  const through = async (way: Way, mcp: Record<string, unknown>) => {
    const gateway = await startGateway({ mcp }, { lifetime: 'file' })
    outcomes.set(way, await runSuite(gateway.mcpUrl, '2025-11-25'))
  }
  await through('HTTP target', { targets: [http] })
  await through('stdio target', { targets: [stdio] })
  // The suite requires its own names.
  await through('federated', { targets: [http, toolsOnly], prefixMode: 'never' })
}, 240_000)

describe('the conformance target', () => {
  it('passes every scenario itself', () => {
    expect(failures('direct')).toEqual([])
    expect(outcomes.get('direct')?.size).toBeGreaterThanOrEqual(33)
  })
})

describe.each(ways.slice(1))('through the gateway: %s', (way) => {
  it('passes every scenario over names of the target', () => {
    const expected = way === 'federated' ? renamed : []
    expect(failures(way).filter(({ scenario }) => !expected.includes(scenario))).toEqual([])
    expect([...(outcomes.get(way)?.keys() ?? [])]).toEqual([...(outcomes.get('direct')?.keys() ?? [])])
  })
})

describe('through the gateway: HTTP target', () => {
  it('passes every single check that passes without it', () => {
    const ids = (way: Way) =>
      [...(outcomes.get(way) ?? [])].map(([name, { checks }]) => [
        name,
        checks.filter(({ status }) => status === 'SUCCESS').map(({ id }) => id),
      ])
    expect(ids('HTTP target')).toEqual(ids('direct'))
  })
})

describe('revision 2026-07-28, which has no sessions', () => {
  it('passes through one HTTP target, and through two', async () => {
    const [{ url, close }, other] = await Promise.all([serveModern(), serveModern()])
    endAfter('test', close)
    endAfter('test', other.close)
    const target = { name: 'modern', mcp: { host: url } }
    const gateway = await startGateway({ mcp: { targets: [target] } })
    const targets = [target, { name: 'other', mcp: { host: other.url } }]
    const federation = await startGateway({ mcp: { targets, prefixMode: 'never' } })
    modern.direct = await runSuite(url, '2026-07-28')
    modern.through = await runSuite(gateway.mcpUrl, '2026-07-28')
    modern.federated = await runSuite(federation.mcpUrl, '2026-07-28')
    const scored = [...modern.direct].filter(([, { unscored }]) => !unscored)
    expect(scored.filter(([, outcome]) => !passes(outcome))).toEqual([])
    for (const [scenario, outcome] of modern.direct) {
      const through = modern.through.get(scenario)
      expect({ scenario, passes: through && passes(through) }).toEqual({ scenario, passes: passes(outcome) })
      const federated = modern.federated.get(scenario)
      if (!renamed.includes(scenario) && passes(outcome))
        expect({ scenario, checks: federated?.checks.filter(({ status }) => status === 'FAILURE') }).toEqual({
          ...{ scenario, checks: [] },
        })
    }
  }, 120_000)
})

describe('docs/mcp-conformance.md', () => {
  it('shows these results', () => {
    const text = readFileSync(document, 'utf8')
    const updated = text
      .replace(/(<!-- table -->\n)[\s\S]*?(<!-- end of table -->)/, `$1\n${table()}\n$2`)
      .replace(/(<!-- modern -->\n)[\s\S]*?(<!-- end of modern -->)/, `$1\n${modernTable()}\n$2`)
    if (process.env['UPDATE_GOLDEN'] === '1') writeFileSync(document, updated)
    expect(readFileSync(document, 'utf8')).toBe(updated)
  })
})

function failures(way: Way) {
  return [...(outcomes.get(way) ?? [])]
    .filter(([, outcome]) => !passes(outcome))
    .map(([scenario, { checks }]) => ({ scenario, checks }))
}

function table(): string {
  const rows = [...(outcomes.get('direct') ?? [])].map(([scenario, { unscored }]) => {
    const cells = ways.map((way) =>
      way === 'federated' && renamed.includes(scenario)
        ? 'other URI'
        : cell(outcomes.get(way)?.get(scenario)),
    )
    return `| ${scenario}${unscored ? ' *' : ''} | ${cells.join(' | ')} |`
  })
  return [
    '| Scenario | Direct | HTTP target | stdio target | Two targets |',
    '|---|---|---|---|---|',
    ...rows,
    '',
  ].join('\n')
}

/** The scored ones: the others are about extensions that the target does not have. */
function modernTable(): string {
  const rows = [...modern.direct]
    .filter(([, { unscored }]) => !unscored)
    .map(
      ([scenario, outcome]) =>
        `| ${scenario} | ${cell(outcome)} | ${cell(modern.through.get(scenario))} | ${renamed.includes(scenario) ? 'other URI' : cell(modern.federated.get(scenario))} |`,
    )
  return ['| Scenario | Direct | HTTP target | Two targets |', '|---|---|---|---|', ...rows, ''].join('\n')
}

function cell(outcome: Outcome | undefined): string {
  if (outcome === undefined) return 'not run'
  const succeeded = outcome.checks.filter(({ status }) => status === 'SUCCESS').length
  return `${passes(outcome) ? 'pass' : 'FAIL'} ${succeeded}/${outcome.checks.length}`
}
