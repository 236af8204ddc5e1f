import { describe, expect, it } from 'vitest'
import {
  type Answer,
  createMemoryDatabase,
  createSteppingClock,
  type Replica,
  startFileMode,
  startHybrid,
} from '../../../test/fixtures/resources.ts'

async function start() {
  const clock = createSteppingClock()
  const database = createMemoryDatabase(clock)
  return { database, ...(await startHybrid(database.open(), clock)) }
}

const ask = (replica: Replica, method: string, path: string, headers?: Record<string, string>) =>
  replica.send(method, `/api/config/history${path}`, Buffer.from(''), headers)
const create = (replica: Replica, kind: string, value: object) =>
  replica.call('PUT', `/${kind}`, { resources: [{ value }] })

type Listed = { records: { id: number; [member: string]: unknown }[]; nextCursor?: string }
const list = async (replica: Replica, query = '') => (await ask(replica, 'GET', query)).body as Listed
const ids = async (replica: Replica, query: string) =>
  (await list(replica, query)).records.map(({ id }) => id)
const firstId = ({ body }: Answer) => (body as { resources: { id: string }[] }).resources[0]?.id ?? ''

describe('the history', () => {
  it('lists changes latest first with author, request and changed fields', async () => {
    const replica = await start()
    const created = await create(replica, 'llm.model', { name: 'm', provider: 'echo' })
    const id = firstId(created)
    const updated = await replica.call('PUT', '/llm.model/m', {
      value: { name: 'm', provider: 'echo', visibility: 'internal' },
    })
    await replica.call('DELETE', '/llm.model/m')
    const { records, nextCursor } = await list(replica)
    expect(nextCursor).toBeUndefined()
    expect(records).toMatchObject([
      { id: 3, operation: 'delete', revision: 2, fields: ['name', 'provider', 'visibility'] },
      {
        id: 2,
        operation: 'update',
        revision: 2,
        fields: ['visibility'],
        requestId: updated.headers['x-request-id'],
      },
      {
        id: 1,
        at: expect.stringMatching(/^2026-01-01T/),
        operation: 'create',
        origin: 'write',
        kind: 'llm.model',
        resourceId: id,
        name: 'm',
        revision: 1,
        who: { address: '127.0.0.1' },
        requestId: created.headers['x-request-id'],
      },
    ])
    expect(updated.headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/)
  })

  it('records neither refused writes nor dry runs', async () => {
    const replica = await start()
    await create(replica, 'llm.model', { name: 'm', provider: 'nobody' })
    await replica.call('PUT', '/llm.model?dryRun=true', {
      resources: [{ value: { name: 'm', provider: 'echo' } }],
    })
    expect(await list(replica)).toEqual({ records: [] })
  })

  it('shows values and differences with masked secrets, changed secrets included', async () => {
    const replica = await start()
    const id = firstId(
      await create(replica, 'llm.apiKey', { key: 'sk-one', metadata: { name: 'a/b', n: 1 } }),
    )
    await replica.call('PUT', `/llm.apiKey/${id}`, {
      value: { key: 'sk-two', metadata: { name: 'c', n: 1 } },
    })
    const detail = await ask(replica, 'GET', '/2')
    expect(detail.body).toMatchObject({
      before: { key: '***', metadata: { name: 'a/b', n: 1, id } },
      after: { key: '***', metadata: { name: 'c', n: 1, id } },
      differences: [
        { path: '/key', before: '***', after: '***' },
        { path: '/metadata/name', before: 'a/b', after: 'c' },
      ],
      fields: ['key', 'metadata'],
      currentRevision: 2,
    })
    for (const query of ['', '?text=sk-one', '?text=sk-t']) {
      expect(JSON.stringify(await list(replica, query))).not.toContain('sk-')
    }
    expect(await ids(replica, '?text=sk-one')).toEqual([])
    expect(await ids(replica, '?text=A/B')).toEqual([2, 1])
  })

  it('is filtered by kind, record, author and time, and paged', async () => {
    const replica = await start()
    for (const name of ['a', 'b', 'c']) await create(replica, 'llm.model', { name, provider: 'echo' })
    const key = firstId(await create(replica, 'llm.apiKey', { key: 'k' }))
    expect(await ids(replica, '?kind=llm.model')).toEqual([3, 2, 1])
    expect(await ids(replica, '?kind=llm.model&id=b')).toEqual([2])
    expect(await ids(replica, `?id=${key}`)).toEqual([4])
    expect(await ids(replica, '?who=127.0.0.1')).toEqual([4, 3, 2, 1])
    expect(await ids(replica, '?who=ada')).toEqual([])
    const at = String((await list(replica)).records[1]?.['at'])
    expect(await ids(replica, `?from=${at}`)).toEqual([4, 3])
    expect(await ids(replica, `?to=${at}`)).toEqual([2, 1])
    expect(await ids(replica, '?from=2026-01-01&to=2026-01-02')).toEqual([4, 3, 2, 1])
    expect(await ids(replica, '?to=2026-01-01')).toEqual([])
    const page = await list(replica, '?limit=3')
    expect(page.records.map(({ id }) => id)).toEqual([4, 3, 2])
    await create(replica, 'llm.model', { name: 'd', provider: 'echo' })
    expect(await list(replica, `?cursor=${page.nextCursor}`)).toMatchObject({ records: [{ id: 1 }] })
  })

  it.each([
    ['?kind=llm.nothing', 'unsupported config resource kind: llm.nothing'],
    ['?id=name', 'id must be a UUID, or a name together with kind'],
    ['?from=yesterday', 'from must be a date or a time of RFC 3339, such as 2026-01-31T08:00:00Z'],
    ['?to=2026-99-99T00:00:00Z', 'to must be a date or a time of RFC 3339, such as 2026-01-31T08:00:00Z'],
    ['?limit=501', 'limit must be a number from 1 to 500'],
    ['?cursor=x', 'cursor must be the nextCursor of a response'],
    ['?who=a&who=b', 'who is in the query more than once'],
    ['?reveal=true', expect.stringContaining('unknown query parameter reveal')],
    [`?text=${'x'.repeat(201)}`, expect.stringContaining('text must be Unicode text of at most 200')],
  ])('refuses the query %s', async (query, message) => {
    expect(await ask(await start(), 'GET', query)).toMatchObject({ status: 400, body: message })
  })

  it.each([
    ['GET', '/99', 404],
    ['GET', '/x', 404],
    ['GET', '/1/other', 404],
    ['POST', '', 405],
    ['GET', '/1/revert', 405],
    ['POST', '/99/revert', 404],
  ])('responds to %s %s with %i', async (method, path, status) => {
    expect((await ask(await start(), method, path)).status).toBe(status)
  })

  it('is unavailable during an outage', async () => {
    const replica = await start()
    replica.database.isAway = true
    expect(await ask(replica, 'GET', '')).toMatchObject({
      status: 503,
      body: 'the history cannot be read: the database is away',
    })
  })

  it.each(['file', 'readOnly'] as const)('is that of version control in mode %s', async (mode) => {
    const replica = await startFileMode(undefined, { mode })
    for (const [method, path] of [
      ['GET', ''],
      ['GET', '/1'],
      ['POST', '/1/revert'],
    ] as const) {
      expect(await ask(replica, method, path)).toMatchObject({
        status: 404,
        body: expect.stringContaining('use version control for the file'),
      })
    }
  })
})

describe('a revert', () => {
  it('restores an update, recreates a deleted record and deletes a created one', async () => {
    const replica = await start()
    const id = firstId(await create(replica, 'llm.apiKey', { key: 'sk-1', metadata: { name: 'ada' } }))
    await replica.call('PUT', `/llm.apiKey/${id}`, { value: { key: 'sk-2' } })
    expect(await ask(replica, 'POST', '/2/revert')).toMatchObject({
      status: 200,
      body: { resources: [{ id, revision: 3, value: { key: '***', metadata: { name: 'ada', id } } }] },
      headers: { etag: '"3"' },
    })
    expect(replica.running().llm?.policies?.apiKey?.keys).toMatchObject([{ key: 'sk-1' }])
    await replica.call('DELETE', `/llm.apiKey/${id}`)
    expect(await ask(replica, 'POST', '/4/revert')).toMatchObject({
      status: 200,
      body: { resources: [{ id }] },
    })
    expect(replica.running().llm?.policies?.apiKey?.keys).toMatchObject([{ key: 'sk-1' }])
    expect(await ask(replica, 'POST', '/1/revert')).toMatchObject({
      status: 200,
      body: { status: 'success' },
    })
    expect(replica.running().llm?.policies?.apiKey?.keys).toEqual([])
    expect((await list(replica)).records.slice(0, 3)).toMatchObject([
      { id: 6, operation: 'delete', origin: 'revert', reverts: 1 },
      { id: 5, operation: 'create', origin: 'revert', reverts: 4 },
      { id: 4, operation: 'delete', origin: 'write' },
    ])
    expect((await ask(replica, 'POST', '/1/revert')).status).toBe(404)
  })

  it('restores policies and renamed records', async () => {
    const replica = await start()
    await replica.call('PUT', '/llm.policy/cors', { value: { allowOrigins: ['https://a.test'] } })
    await replica.call('PUT', '/llm.policy/cors', { value: { allowOrigins: ['https://b.test'] } })
    await create(replica, 'llm.model', { name: 'old', provider: 'echo' })
    await replica.call('PUT', '/llm.model/old', { value: { name: 'new', provider: 'echo' } })
    expect((await ask(replica, 'POST', '/2/revert')).status).toBe(200)
    expect((await ask(replica, 'POST', '/4/revert')).status).toBe(200)
    const { llm } = replica.running()
    expect(llm?.policies?.cors).toMatchObject({ allowOrigins: ['https://a.test'] })
    expect(llm?.models.map(({ name }) => name)).toEqual(['from-file', 'old'])
  })

  it('is checked like any other write', async () => {
    const replica = await start()
    await create(replica, 'llm.provider', { name: 'p', provider: 'openai' })
    await create(replica, 'llm.model', { name: 'm', provider: { reference: 'p' } })
    expect(await ask(replica, 'POST', '/1/revert')).toMatchObject({ status: 422 })
    await replica.call('DELETE', '/llm.model/m')
    await create(replica, 'llm.model', { name: 'm', provider: 'echo' })
    await replica.call('DELETE', '/llm.provider/p')
    expect(await ask(replica, 'POST', '/3/revert')).toMatchObject({ status: 422 })
    expect((await list(replica)).records).toHaveLength(5)
  })

  it('respects if-match and dryRun', async () => {
    const replica = await start()
    await create(replica, 'llm.model', { name: 'm', provider: 'echo' })
    await replica.call('PUT', '/llm.model/m', {
      value: { name: 'm', provider: 'echo', visibility: 'internal' },
    })
    expect((await ask(replica, 'POST', '/2/revert', { 'if-match': '"1"' })).status).toBe(412)
    expect((await ask(replica, 'POST', '/1/revert', { 'if-match': '"1"' })).status).toBe(412)
    const dry = await ask(replica, 'POST', '/2/revert?dryRun=true', { 'if-match': '"2"' })
    expect(dry).toMatchObject({
      status: 200,
      body: { resources: [{ value: { name: 'm', provider: 'echo' } }] },
    })
    expect((await list(replica)).records).toHaveLength(2)
    expect((await ask(replica, 'POST', '/2/revert', { 'if-match': '"2"' })).status).toBe(200)
    await replica.call('DELETE', '/llm.model/m')
    expect((await ask(replica, 'POST', '/4/revert', { 'if-match': '*' })).status).toBe(412)
  })
})
