import { describe, expect, it } from 'vitest'
import {
  createMemoryDatabase,
  createSteppingClock,
  type Replica,
  startFileMode,
  startHybrid,
} from '../../test/fixtures/resources.ts'
import { cpuMsOf, expectBelow } from '../../test/support/time-bound.ts'
import type { JsonObject } from '../lib/json/json.ts'
import { printable } from '../schema/printable.ts'
import type { Envelope } from './change/change.ts'
import { type Allowances, isMetadataUrl } from './change/restrictions.ts'
import { secretPaths } from './secrets/secret-paths.ts'
import { hasSecret, isMasked, maskText } from './secrets/secret-text.ts'

describe('texts', () => {
  it.each([
    ['https://ada:pw@mcp.test/x', 'host', 'https://***@mcp.test/x'],
    ['https://mcp.test/x?a=s3cret&b=2', 'host', 'https://mcp.test/x?a=***&b=***'],
    ['/mcp?a=s3cret#f', 'path', '/mcp?a=***#f'],
    ['https://a.test/?page=1&api_key=s3cret', 'jwks', 'https://a.test/?page=1&api_key=***'],
    ['https://mcp.test/x?s3cret', 'host', 'https://mcp.test/x?***'],
    ['https://mcp.test/x?=s3cret&a=&b', 'host', 'https://mcp.test/x?=***&a=&***'],
    ['--api-key=s3cret', 'args', '--api-key=***'],
    ['API_KEY=s3cret=', 'args', 'API_KEY=***'],
    ['s3cret', 'x-api-key', '***'],
    ['s3cret', 'x-functions-key', '***'],
    ['s3cret', 'DD-APPLICATION-KEY', '***'],
    ['s3cret', 'refreshToken', '***'],
    ['s3cret', 'Authorization', '***'],
    ['s3cret', 'x-auth-token', '***'],
    ['Bearer s3cret-s3cret', 'x-other', '***'],
    ['Basic c2VjcmV0', 'x-other', '***'],
  ])('%s of %s is masked as %s', (text, name, masked) => {
    expect(maskText(text, name)).toBe(masked)
    expect(hasSecret(text, name)).toBe(true)
    expect(isMasked(masked, name)).toBe(masked !== '***' || /key|auth|token/i.test(name))
  })

  it.each([
    ['https://mcp.test/x', 'host'],
    ['Bearer ', 'prefix'],
    ['12', 'x-token-count'],
    ['k', 'idempotency-key'],
    ['12', 'maxTokens'],
    ['--token', 'args'],
    ['--page=1', 'args'],
    ['--page=***', 'args'],
    ['token=="a"', 'rules'],
    ['https://a.test/?page', 'jwks'],
    ['request.path == "/a?b=c d"', 'key'],
    ['https://a.test/?page=1', 'jwks'],
    ['', 'authorization'],
  ])('%s of %s contains no secret', (text, name) => {
    expect(hasSecret(text, name)).toBe(false)
    expect(isMasked(text, name)).toBe(false)
  })
})

describe('a text of 1 MiB', () => {
  it.each(['?', '&', '%', '://', '":', 'a=', '[', '@', 'Aa'])(
    'of %s is looked through at once',
    async (part) => {
      const text = part.repeat(2 ** 20 / part.length)
      await expectBelow(2_000, () =>
        cpuMsOf(() => {
          for (const value of [text, `https://${text}`, `"${text}\u2028x`, `${text}]`]) {
            isMasked(value, 'host')
            hasSecret(value, value)
            isMetadataUrl(value)
            printable(value)
          }
        }),
      )
    },
  )
})

const target = {
  name: 'tools',
  mcp: { host: 'https://tools.test/mcp?team=s3cret-1' },
  policies: {
    backendAuth: { key: 's3cret-2' },
    requestHeaderModifier: { set: { 'x-api-key': 's3cret-3', 'x-plain': 'shown' } },
  },
}

const maskedTarget = {
  name: 'tools',
  mcp: { host: 'https://tools.test/mcp?team=***' },
  policies: {
    backendAuth: { key: '***' },
    requestHeaderModifier: { set: { 'x-api-key': '***', 'x-plain': 'shown' } },
  },
}

it('masked fields equal those encrypted at rest', () => {
  expect(secretPaths('mcp.target')(target)).toEqual([
    ['mcp', 'host'],
    ['policies', 'backendAuth', 'key'],
    ['policies', 'requestHeaderModifier', 'set', 'x-api-key'],
  ])
})

const config = `
llm:
  models: []
  policies: {apiKey: {keys: []}}
mcp:
  targets: []
`

async function hybrid(allowances: Allowances = {}): Promise<Replica> {
  const clock = createSteppingClock()
  return await startHybrid(createMemoryDatabase(clock).open(), clock, config, { allowances })
}

const first = ({ body }: { body: unknown }) =>
  (body as { resources: Envelope[] }).resources[0] as Envelope & { value: JsonObject }
const one = (value: object) => ({ resources: [{ value }] })

describe('in hybrid mode', () => {
  it('secrets are masked in all responses, unless revealed', async () => {
    const replica = await hybrid()
    const created = await replica.call('PUT', '/mcp.target', one(target))
    expect(first(created).value).toEqual(maskedTarget)
    for (const path of ['', '/mcp.target', '/mcp.target?limit=5']) {
      expect(first(await replica.call('GET', path)).value).toEqual(maskedTarget)
      const revealing = `${path}${path.includes('?') ? '&' : '?'}reveal=true`
      expect(first(await replica.call('GET', revealing)).value).toEqual(target)
    }
    expect((await replica.call('GET', '/mcp.target/tools')).body).toMatchObject({ value: maskedTarget })
    expect((await replica.call('GET', '/mcp.target/tools?reveal=true')).body).toMatchObject({ value: target })
    expect(first(await replica.call('PUT', '/mcp.target?reveal=true', one(target))).value).toEqual(target)
  })

  it('credentials in program arguments are masked, and masks are not stored', async () => {
    const replica = await hybrid({ allowStdioTargets: true })
    const argsOf = ({ value }: { value: JsonObject }) => (value['stdio'] as JsonObject)['args']
    const program = (args: string[]) => ({ name: 'p', stdio: { cmd: 'cat', args } })
    const value = program(['--token', 's3cret-1', '-v', '--api-key=s3cret-2'])
    const created = first(await replica.call('PUT', '/mcp.target', one(value)))
    expect(argsOf(created)).toEqual(['--token', '***', '-v', '--api-key=***'])
    expect(secretPaths('mcp.target')(value)).toEqual([
      ['stdio', 'args', 1],
      ['stdio', 'args', 3],
    ])
    expect(
      JSON.stringify((await replica.send('GET', '/api/config/effective', new Uint8Array())).body),
    ).not.toContain('s3cret')
    expect(JSON.stringify(replica.log.lines)).not.toContain('s3cret')
    for (const args of [
      ['--token', '***'],
      ['--token', 'a', '--api-key=***'],
    ]) {
      expect((await replica.call('PUT', '/mcp.target', one(program(args)))).status).toBe(400)
    }
  })

  it('virtual keys are masked, their metadata is not', async () => {
    const replica = await hybrid()
    const { id, value } = first(
      await replica.call('PUT', '/llm.apiKey', one({ key: 'k', metadata: { name: 'a' } })),
    )
    expect(value).toEqual({ key: '***', metadata: { name: 'a', id } })
  })

  it('each read of secrets is logged', async () => {
    const replica = await hybrid()
    await replica.call('PUT', '/mcp.target', one(target))
    await replica.call('GET', '/mcp.target')
    expect(reveals(replica)).toEqual([])
    const { id } = first(await replica.call('GET', '?reveal=true'))
    await replica.call('GET', '/mcp.target/tools?reveal=true')
    expect(reveals(replica)).toMatchObject([
      { op: 'reveal', kind: '*', address: '127.0.0.1' },
      { op: 'reveal', kind: 'mcp.target', id, address: '127.0.0.1' },
    ])
  })

  it('the audit line of a change has masked values before and after', async () => {
    const replica = await hybrid()
    await replica.call('PUT', '/mcp.target', one(target))
    await replica.call('PUT', '/mcp.target/tools', {
      value: { ...target, mcp: { host: 'https://other.test/mcp?team=s3cret-4' } },
    })
    expect(audits(replica).at(-1)).toMatchObject({
      op: 'put',
      kind: 'mcp.target',
      fields: ['mcp'],
      changed: [
        {
          field: 'mcp',
          before: '{"host":"https://tools.test/mcp?team=***"}',
          after: '{"host":"https://other.test/mcp?team=***"}',
        },
      ],
    })
    expect(JSON.stringify(replica.log.lines)).not.toContain('s3cret')
  })
})

const modes = [
  ['hybrid', hybrid],
  ['file', () => startFileMode(config)],
] as const

describe.each(modes)('in %s mode', (_, start) => {
  it.each([
    ['mcp.target', maskedTarget, 'value.mcp.host'],
    ['mcp.target', { ...target, policies: maskedTarget.policies }, 'value.policies.backendAuth.key'],
    ['mcp.target', { name: 't', mcp: { host: 'https://***@tools.test/mcp' } }, 'value.mcp.host'],
    ['llm.apiKey', { key: '***' }, 'value.key'],
  ])('a masked value is not stored: %s %j', async (kind, value, place) => {
    const replica = await start()
    expect(await replica.call('PUT', `/${kind}`, one(value))).toMatchObject({
      status: 400,
      body: `${place} is masked: send the secret itself, which a read with ?reveal=true returns`,
    })
  })
})

function audits({ log }: Replica): object[] {
  return log.lines.flatMap(({ fields }) => {
    const audit: unknown = 'audit' in fields ? fields.audit : undefined
    return typeof audit === 'object' && audit !== null ? [audit] : []
  })
}

function reveals(replica: Replica): object[] {
  return audits(replica).filter((audit) => 'op' in audit && audit.op === 'reveal')
}
