import { randomBytes, randomUUID } from 'node:crypto'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fixtureContext } from '../../../test/fixtures/pipeline.ts'
import {
  createMemoryDatabase,
  defaultConfig,
  type Replica,
  startFileMode,
  startHybrid,
} from '../../../test/fixtures/resources.ts'
import { countTurns } from '../../../test/support/count-turns.ts'
import type { Summary } from '../../ledger/query/summary/summary.ts'
import { createWorkQueue } from '../../lib/scheduling/work-queue.ts'
import { createYieldPoint } from '../../lib/scheduling/yielding.ts'
import { createKeyIndex } from '../../policies/api-key/key-index.ts'
import { type ApiKeyRecord, digestOf, keyHashOf } from '../../policies/api-key/record.ts'
import { createAdminApi } from '../api.ts'
import { keyEndpoints } from './keys.ts'
import type { KeyLedger } from './keys-options.ts'

const start = Date.parse('2026-11-22T12:00:00Z')
const hourMs = 3_600_000

function fixtureClock() {
  let now = start
  return {
    now: () => now,
    monotonic: () => now,
    advance(ms: number) {
      now += ms
    },
  }
}

type Fixture = {
  replica: Replica
  clock: ReturnType<typeof fixtureClock>
  ask(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>
  /** Result of a request with this key: the id of its record, or the reason of the refusal. */
  use(key: string): string
}
type Answer = { status: number; body: never; headers: Record<string, string | string[]> }

async function fixture(
  mode: 'file' | 'hybrid',
  config = defaultConfig,
  ledger?: KeyLedger,
): Promise<Fixture> {
  const clock = fixtureClock()
  const replica =
    mode === 'file'
      ? await startFileMode(config)
      : await startHybrid(createMemoryDatabase(clock).open(), clock, config)
  const api = createAdminApi({
    endpoints: keyEndpoints({
      resources: replica.resources,
      clock,
      randomBytes,
      newRequestId: randomUUID,
      flushLog: () => Promise.resolve(),
      yieldPoint: createYieldPoint({ monotonic: () => performance.now() }),
      ledger,
    }),
    next: () => Promise.reject(new Error('not an endpoint of keys')),
    workQueue: createWorkQueue({ monotonic: () => performance.now() }),
    log: replica.log,
  })
  return {
    replica,
    clock,
    async ask(method, path, body, headers = {}) {
      const type = body === undefined ? {} : { 'content-type': 'application/json' }
      const bytes = Buffer.from(body === undefined ? '' : JSON.stringify(body))
      const target = `/api/keys${path}`
      const reply = await api({
        method,
        target,
        headers: { ...type, ...headers },
        body: bytes,
        address: '::1',
      })
      const text = Buffer.from(reply.body as Uint8Array).toString()
      return { status: reply.status, headers: reply.headers, body: JSON.parse(text) as never }
    },
    use(key) {
      const keys = (replica.running().llm?.policies?.apiKey?.keys ?? []) as ApiKeyRecord[]
      const entry = createKeyIndex(keys, fixtureContext(), 'llm').find(digestOf(key))
      if (entry === undefined) return 'unknown'
      return clock.now() < entry.validUntil ? entry.id : entry.ending
    },
  }
}

async function create(replica: Replica, value: object = {}) {
  const answer = await replica.call('PUT', '/llm.apiKey', { resources: [{ value }] })
  expect(answer.status, JSON.stringify(answer.body)).toBe(200)
  const { resources } = answer.body as { resources: { id: string; key?: string; value: object }[] }
  const [first] = resources
  if (first === undefined) throw new Error('nothing stored')
  return first
}

const modes = ['file', 'hybrid'] as const

describe.each(modes)('a key created without key and keyHash in %s mode', (mode) => {
  it('is generated, returned once, and stored as a hash', async () => {
    const { replica, use } = await fixture(mode)
    const { id, key = '', value } = await create(replica, { metadata: { name: 'ci' } })
    expect(key).toMatch(/^tg-[A-Za-z0-9]{40}$/)
    expect(value).toEqual({ keyHash: keyHashOf(digestOf(key)), metadata: { name: 'ci', id } })
    expect(use(key)).toBe(id)
    const stored = JSON.stringify([replica.running(), replica.log, await replica.call('GET', '')])
    expect(stored).not.toContain(key)
    if ('file' in replica) expect(JSON.stringify(replica.file)).not.toContain(key)
  })

  it('is neither returned nor stored in a dry run', async () => {
    const { replica, ask } = await fixture(mode)
    const resources = [{ value: { metadata: { name: 'ci' } } }]
    const answer = await replica.call('PUT', '/llm.apiKey?dryRun=true', { resources })
    expect(answer.status).toBe(200)
    expect(JSON.stringify(answer.body)).not.toMatch(/tg-|sha256/)
    expect(JSON.stringify(answer.body)).toContain('"name":"ci"')
    expect((await ask('GET', '')).body).toEqual({ keys: [] })
  })

  it('is generated for each record of a request that has none', async () => {
    const { replica, use } = await fixture(mode)
    const resources = [{ value: {} }, { value: { key: 'own' } }, { value: {} }]
    const answer = await replica.call('PUT', '/llm.apiKey', { resources })
    const stored = (answer.body as { resources: { id: string; key?: string }[] }).resources
    expect(stored.map(({ key }) => key !== undefined)).toEqual([true, false, true])
    expect(stored.map(({ id, key = 'own' }) => use(key) === id)).toEqual([true, true, true])
  })
})

describe.each(modes)('a rotation in %s mode', (mode) => {
  it('returns a new secret and retains the old one for the overlap', async () => {
    const { replica, ask, use, clock } = await fixture(mode)
    const { id, key: old = '' } = await create(replica, { metadata: { name: 'ci' }, allowedModels: ['a'] })
    const { status, body } = await ask('POST', `/${id}/rotate`, { overlap: '2h' })
    expect(status).toBe(200)
    const { key } = body as { key: string }
    expect(body).toMatchObject({ id, previousKeysExpireAt: '2026-11-22T14:00:00.000Z' })
    expect([use(key), use(old)]).toEqual([id, id])
    expect((await ask('GET', `/${id}`)).body).toMatchObject({
      name: 'ci',
      allowedModels: ['a'],
      previousKeys: [{ expiresAt: '2026-11-22T14:00:00.000Z' }],
    })
    clock.advance(2 * hourMs)
    expect([use(key), use(old)]).toEqual([id, 'rotated'])
    expect((await ask('GET', `/${id}`)).body).not.toHaveProperty('previousKeys')
  })

  it('ends all earlier secrets with overlap 0', async () => {
    const { replica, ask, use } = await fixture(mode)
    const { id, key: first = '' } = await create(replica)
    const second = ((await ask('POST', `/${id}/rotate`, {})).body as { key: string }).key
    const third = ((await ask('POST', `/${id}/rotate`, { overlap: '0' })).body as { key: string }).key
    expect([first, second, third].map(use)).toEqual(['unknown', 'unknown', id])
  })

  it('is refused for unknown keys and invalid overlaps', async () => {
    const { replica, ask } = await fixture(mode)
    const { id } = await create(replica)
    expect((await ask('POST', `/${randomUUID()}/rotate`, {})).status).toBe(404)
    for (const overlap of ['1', 'soon', '366d', -1, null])
      expect((await ask('POST', `/${id}/rotate`, { overlap })).status).toBe(400)
    expect((await ask('POST', `/${id}/rotate`, { other: 1 })).status).toBe(400)
    expect((await ask('POST', `/${id}/rotate`)).status).toBe(415)
    expect((await ask('GET', `/${id}/rotate`)).status).toBe(405)
  })

  it('is refused with too many valid secrets', async () => {
    const { replica, ask } = await fixture(mode)
    const { id } = await create(replica)
    for (let count = 0; count < 8; count++) expect((await ask('POST', `/${id}/rotate`, {})).status).toBe(200)
    expect((await ask('POST', `/${id}/rotate`, {})).status).toBe(409)
    expect((await ask('POST', `/${id}/rotate`, { overlap: '0' })).status).toBe(200)
  })

  it('leaves every secret valid exactly until the earliest end of its overlaps', async () => {
    const step = fc.oneof(
      fc.record({ op: fc.constant('rotate' as const), hours: fc.integer({ min: 0, max: 5 }) }),
      fc.record({ op: fc.constant('wait' as const), hours: fc.integer({ min: 1, max: 3 }) }),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 7 }), async (steps) => {
        const { replica, ask, use, clock } = await fixture(mode)
        const { id, key = '' } = await create(replica)
        const ends = new Map([[key, Number.POSITIVE_INFINITY]])
        for (const { op, hours } of steps) {
          if (op === 'wait') clock.advance(hours * hourMs)
          else {
            const { body } = await ask('POST', `/${id}/rotate`, { overlap: hours === 0 ? '0' : `${hours}h` })
            for (const [known, end] of ends) ends.set(known, Math.min(end, clock.now() + hours * hourMs))
            ends.set((body as { key: string }).key, Number.POSITIVE_INFINITY)
          }
          for (const [known, end] of ends) expect(use(known) === id).toBe(clock.now() < end)
        }
      }),
      { numRuns: 8 },
    )
  })

  it('gives concurrent requests secrets that are all valid', async () => {
    const { replica, ask, use } = await fixture(mode)
    const { id, key = '' } = await create(replica)
    const answers = await Promise.all([1, 2, 3].map(() => ask('POST', `/${id}/rotate`, {})))
    const keys = answers.map(({ body }) => (body as { key: string }).key)
    expect(new Set(keys).size).toBe(3)
    expect([key, ...keys].map(use)).toEqual([id, id, id, id])
  })
})

describe('a rotation with if-match', () => {
  it('is refused with another revision', async () => {
    const { replica, ask } = await fixture('hybrid')
    const { id } = await create(replica)
    const [one, other] = await Promise.all(
      [1, 2].map(() => ask('POST', `/${id}/rotate`, {}, { 'if-match': '"1"' })),
    )
    expect([one?.status, other?.status].sort()).toEqual([200, 412])
    const rotated = one?.status === 200 ? one : other
    expect(rotated?.headers['etag']).toBe('"2"')
    expect((await ask('POST', `/${id}/rotate`, {}, { 'if-match': '"2"' })).status).toBe(200)
  })
})

describe('keys of a file', () => {
  const config = `llm:
  models: []
  policies:
    apiKey:
      keys:
        # The build server.
        - key: tg-of-the-file
          metadata: { name: build } # quoted nowhere
          allowedModels: [a, b]
`

  it('are rotated in place under the same id', async () => {
    const { replica, ask, use } = await fixture('file', config)
    const id = use('tg-of-the-file')
    const { status, body } = await ask('POST', `/${id}/rotate`, { overlap: '1h' })
    expect(status).toBe(200)
    const { key } = body as { key: string }
    expect([use('tg-of-the-file'), use(key)]).toEqual([id, id])
    const { text } = (replica as Awaited<ReturnType<typeof startFileMode>>).file
    expect(text).toContain('# The build server.')
    expect(text).toContain('# quoted nowhere')
    expect(text).toContain('allowedModels: [a, b]')
    expect(text).toContain(id)
    expect(text).not.toContain('tg-of-the-file')
    expect((await ask('POST', `/${id}/rotate`, { overlap: '0' })).status).toBe(200)
    expect(use(key)).toBe('unknown')
  })

  it('are not rotated in hybrid mode', async () => {
    const { ask, use } = await fixture('hybrid', config)
    const id = use('tg-of-the-file')
    const answer = await ask('POST', `/${id}/rotate`, {})
    expect(answer).toMatchObject({
      status: 409,
      body: `file-owned config resource cannot be updated in hybrid mode: llm.apiKey/${id}`,
    })
    expect((await ask('GET', `/${id}`)).body).toMatchObject({ id, source: 'file', name: 'build' })
  })

  it('with the same id are not rotated', async () => {
    const same = `${config}        - key: tg-other
          metadata: { id: one }
        - key: tg-another
          metadata: { id: one }
`
    const { ask } = await fixture('file', same)
    expect(await ask('POST', '/one/rotate', {})).toMatchObject({
      status: 409,
      body: 'the file has several keys with this id',
    })
  })
})

describe.each(modes)('a key of another scope in %s mode', (mode) => {
  const config = `${defaultConfig}
mcp:
  targets: []
  policies:
    apiKey:
      keys:
        - key: tg-of-mcp
          metadata: { id: of-mcp }
`

  it('is not rotated, with the reason', async () => {
    const { ask } = await fixture(mode, config)
    expect(await ask('POST', '/of-mcp/rotate', {})).toMatchObject({
      status: 409,
      body: 'only keys of llm.policies.apiKey can be rotated: replace it in the configuration of mcp',
    })
    expect(await ask('POST', '/none/rotate', {})).toMatchObject({ status: 404, body: 'key not found: none' })
  })
})

describe('the list of keys', () => {
  const values = [
    { metadata: { name: 'b', user: 'Ada' }, expiresAt: '2026-11-22T11:00:00Z' },
    { metadata: { name: 'a', group: 'platform', apiKey: 'secret' }, expiresAt: '2027-11-22T11:00:00Z' },
    { metadata: { name: 'c' }, disabled: true },
    {},
  ]

  async function filled(ledger?: KeyLedger) {
    const made = await fixture('hybrid', defaultConfig, ledger)
    for (const value of values) await create(made.replica, { key: `tg-${randomUUID()}`, ...value })
    const names = async (query: string) => {
      const { body } = await made.ask('GET', query)
      return (body as { keys: { name?: string }[] }).keys.map(({ name = '' }) => name)
    }
    return { ...made, names }
  }

  it('is sorted, searched and filtered by state', async () => {
    const { names } = await filled()
    expect(await names('?sort=name')).toEqual(['', 'a', 'b', 'c'])
    expect(await names('?sort=-name')).toEqual(['c', 'b', 'a', ''])
    expect((await names('?sort=expiresAt')).slice(0, 2)).toEqual(['b', 'a'])
    expect(await names('?search=ADA')).toEqual(['b'])
    expect(await names('?search=plat')).toEqual(['a'])
    expect(await names('?state=expired')).toEqual(['b'])
    expect(await names('?state=disabled')).toEqual(['c'])
    expect(await names('?state=active&sort=name')).toEqual(['', 'a'])
  })

  it('contains neither keys nor hashes nor secrets', async () => {
    const { ask } = await filled()
    const { body } = await ask('GET', '')
    expect(JSON.stringify(body)).not.toMatch(/tg-|sha256|keyHash|secret/)
  })

  it.each(['?sort=key', '?state=new', '?limit=0', '?limit=1001', '?cursor=x', '?page=1'])(
    'refuses %s',
    async (query) => {
      const { ask } = await filled()
      expect((await ask('GET', query)).status).toBe(400)
    },
  )

  it('has times of the last use, and usage of a key, from the ledger', async () => {
    const measures = { requests: 2, errors: 1, tokens: { total: 30 }, costPicodollars: 9_030_000_000n }
    const summary = {
      ...{ from: start - hourMs, to: start, bucketMs: hourMs },
      buckets: [{ start: start - hourMs, measures }],
      groups: [{ measures }],
    } as unknown as Summary
    const ledger: KeyLedger = {
      readKeysUsed: (ids) => Promise.resolve(new Map([[ids[0] ?? '', start - 1_000]])),
      summarize: () => Promise.resolve(summary),
    }
    const { ask } = await filled(ledger)
    const { keys } = (await ask('GET', '?sort=name&limit=1')).body as { keys: { id: string }[] }
    expect(keys[0]).toMatchObject({ lastUsedAt: '2026-11-22T11:59:59.000Z', revision: 1, source: 'database' })
    const sums = { requests: 2, errors: 1, totalTokens: 30, cost: '0.00903' }
    expect((await ask('GET', `/${keys[0]?.id}`)).body).toMatchObject({
      usage: { ...sums, days: [{ start: '2026-11-22T11:00:00.000Z', ...sums }] },
    })
    expect((await ask('GET', '/none')).status).toBe(404)
  })

  it('yields to traffic while it reads many keys', async () => {
    const keys = Array.from(
      { length: 20_000 },
      (_, at) => `        - keyHash: ${keyHashOf(digestOf(`k${at}`))}`,
    )
    const config = `llm:\n  models: []\n  policies:\n    apiKey:\n      keys:\n${keys.join('\n')}\n`
    const { ask } = await fixture('file', config)
    let count = 0
    const turns = await countTurns(async () => {
      const { body } = await ask('GET', '?sort=name&limit=1000')
      count = (body as { keys: object[] }).keys.length
    })
    expect(count).toBe(1_000)
    expect(turns).toBeGreaterThan(2)
  })

  it('has every key once over all pages, in any order', async () => {
    const { ask, replica } = await filled()
    const keys = Array.from({ length: 60 }, (_, at) => ({
      value: { key: `k${at}`, metadata: { name: `n${at % 7}` } },
    }))
    await replica.call('PUT', '/llm.apiKey', { resources: keys })
    for (const sort of ['id', '-id', 'name', '-name', 'expiresAt', '-expiresAt']) {
      const ids: string[] = []
      let cursor = ''
      do {
        const { body } = await ask('GET', `?sort=${sort}&limit=7${cursor && `&cursor=${cursor}`}`)
        const page = body as { keys: { id: string }[]; nextCursor?: string }
        ids.push(...page.keys.map(({ id }) => id))
        cursor = page.nextCursor ?? ''
      } while (cursor !== '')
      expect(ids).toHaveLength(64)
      expect(new Set(ids).size).toBe(64)
      if (sort === 'id') expect(ids).toEqual(ids.toSorted())
    }
  })
})
