import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import {
  call,
  type FixtureCall,
  type FixtureGateway,
  fixtureLlm,
  jsonReply,
} from '../../../../test/fixtures/llm.ts'
import { runToCompletion } from '../../../lib/scheduling/yielding.ts'
import type { OutgoingRequest, Reply } from '../../../net/http-client/send.ts'
import { compileLlmSection } from '../llm-section.ts'
import { createSqliteRecords } from './sqlite-records.ts'

const folder = mkdtempSync(join(tmpdir(), 'tollgate-lists-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const models = [
  ...['one', 'two'].map((name) => ({
    name,
    provider: 'openai' as const,
    params: { apiKey: 'k', baseUrl: `https://${name}.test/v1` },
  })),
  {
    name: 'claude',
    provider: 'anthropic' as const,
    params: { apiKey: 'k', baseUrl: 'https://three.test/v1' },
  },
]

type Lists = FixtureGateway & {
  gone: Set<string>
  busy: Set<string>
  outage: { isOn: boolean }
  create(options?: { purpose?: string; model?: string; more?: object }): Promise<string>
  list(query?: string, more?: Partial<FixtureCall>): Promise<{ status: number; value: Listed }>
}

type Listed = {
  data: { id: string }[]
  has_more: boolean
  first_id: string | null
  last_id: string | null
  next_page?: string | null
  error?: { message: string; code?: string }
}

let files = 0

/** A gateway with a database, and providers with files of their own. */
function listsOf(hasDatabase = true): Lists {
  files += 1
  const store = createSqliteRecords(join(folder, `${files}.db`), Date.now)
  const gone = new Set<string>()
  const busy = new Set<string>()
  const outage = { isOn: false }
  let count = 0

  function answer({ method, path, origin }: OutgoingRequest): Reply {
    if (method === 'POST') {
      count += 1
      return jsonReply({ id: `file-${count}`, purpose: 'user_data', origin })
    }
    const id = path.split('?')[0]?.split('/').at(-1) ?? ''
    if (gone.has(id)) return jsonReply({ error: { message: 'not found' } }, 404)
    if (busy.has(id)) return jsonReply({ error: { message: 'too many requests' } }, 429)
    return jsonReply({ id, origin, ...(method === 'DELETE' && { deleted: true }) })
  }

  const gateway = fixtureLlm((context) => {
    const objectRecords = hasDatabase
      ? (request: Parameters<typeof store.run>[0]) =>
          outage.isOn ? Promise.reject(new Error('outage')) : store.run(request)
      : undefined
    return runToCompletion(
      compileLlmSection({ models }, { ...context, objectRecords }, { maxBufferSize: 1_000_000 }),
    )
  }, answer)
  return {
    ...gateway,
    gone,
    busy,
    outage,
    async create({ purpose = 'user_data', model = 'one', more = {} } = {}) {
      const head = 'Content-Disposition: form-data; name='
      const { text } = await call(gateway, {
        path: '/v1/files',
        headers: { 'content-type': 'multipart/form-data; boundary=b1', 'x-tollgate-model': model, ...more },
        body: Buffer.from(
          `--b1\r\n${head}"purpose"\r\n\r\n${purpose}\r\n--b1\r\n${head}"file"; filename="a"\r\n\r\nx\r\n--b1--\r\n`,
        ),
      })
      return JSON.parse(text).id
    },
    async list(query = '', more = {}) {
      const { status, text } = await call(gateway, { method: 'GET', path: '/v1/files', query, ...more })
      return { status, value: JSON.parse(text) }
    },
  }
}

const idsOf = ({ data }: Listed) => data.map(({ id }) => id)

describe('a list of files', () => {
  it('has the objects of all providers, newest first, with ids of the gateway', async () => {
    const gateway = listsOf()
    const created = [await gateway.create(), await gateway.create({ model: 'two' }), await gateway.create()]
    const { status, value } = await gateway.list()
    expect([status, idsOf(value)]).toEqual([200, created.toReversed()])
    expect(value).toMatchObject({
      object: 'list',
      has_more: false,
      first_id: created[2],
      last_id: created[0],
    })
    expect(gateway.sent.slice(3).map(({ origin, path }) => origin + path)).toEqual([
      'https://one.test/v1/files/file-3',
      'https://two.test/v1/files/file-2',
      'https://one.test/v1/files/file-1',
    ])
    expect(idsOf((await gateway.list('?order=asc')).value)).toEqual(created)
  })

  it('has pages, also after deletions', async () => {
    const gateway = listsOf()
    const created: string[] = []
    for (let index = 0; index < 5; index += 1) created.unshift(await gateway.create())
    const seen: string[] = []
    let query = '?limit=2'
    for (;;) {
      const { value } = await gateway.list(query)
      const ids = idsOf(value)
      seen.push(...ids)
      for (const id of ids) await call(gateway, { method: 'DELETE', path: `/v1/files/${id}` })
      if (!value.has_more) break
      query = `?limit=2&after=${value.last_id}`
    }
    expect(seen).toEqual(created)
    expect(idsOf((await gateway.list()).value)).toEqual([])
  })

  it('omits objects that the provider or the key does not permit any more', async () => {
    const gateway = listsOf()
    const first = await gateway.create()
    await gateway.create()
    const other = await gateway.create({ model: 'two' })
    gateway.gone.add('file-2')
    expect(idsOf((await gateway.list()).value)).toEqual([other, first])
    const sent = gateway.sent.length
    expect(idsOf((await gateway.list('', { mayUseModel: (model) => model === 'one' })).value)).toEqual([
      first,
    ])
    // The object that is gone is not requested again.
    expect(gateway.sent).toHaveLength(sent + 1)
  })

  it('has the form of each API', async () => {
    const gateway = listsOf()
    const version = { 'anthropic-version': '2023-06-01' }
    const openAi = await gateway.create()
    const created = [1, 2, 3].map(() => gateway.create({ model: 'claude', more: version }))
    const [oldest, middle, newest] = await Promise.all(created)
    expect(idsOf((await gateway.list()).value)).toEqual([openAi])
    const list = async (query: string) => (await gateway.list(query, { headers: version })).value
    expect(await list('?limit=2&beta=true')).toEqual({
      data: [expect.objectContaining({ id: newest }), expect.objectContaining({ id: middle })],
      ...{ has_more: true, first_id: newest, last_id: middle, next_page: middle },
    })
    expect(gateway.sent.at(-1)?.path).toMatch(/\?beta=true$/)
    expect(idsOf(await list(`?page=${middle}`))).toEqual([oldest])
    expect(idsOf(await list(`?before_id=${oldest}&limit=1`))).toEqual([middle])
    expect(await list(`?before_id=${oldest}`)).toMatchObject({
      has_more: false,
      first_id: newest,
      last_id: middle,
    })
  })

  it.each([
    ['?limit=0', 400, /limit must be/],
    ['?order=up', 400, /order must be/],
    ['?after=file-x', 400, /after must be the id of an object of this client/],
    ['?before_id=file-x', 400, /before_id is not supported/],
    ['?limit=1&limit=2', 400, /limit must occur once/],
  ])('with %s is refused', async (query, status, message) => {
    const refused = await listsOf().list(query)
    expect([refused.status, refused.value.error?.message]).toEqual([status, expect.stringMatching(message)])
  })

  it('is refused without a database, and during its outage, in which files are created nevertheless', async () => {
    const without = await listsOf(false).list()
    expect([without.status, without.value.error]).toMatchObject([
      400,
      { code: 'unsupported_endpoint', message: expect.stringContaining('config.database.url') },
    ])
    const gateway = listsOf()
    gateway.outage.isOn = true
    expect(await gateway.create()).toMatch(/^file-/)
    const refused = await gateway.list()
    expect([refused.status, refused.value.error?.code]).toEqual([503, 'database_unavailable'])
  })

  it('is the error of a provider that does not describe an object, and may be empty', async () => {
    const gateway = listsOf()
    await gateway.create()
    gateway.busy.add('file-1')
    const { status, value } = await gateway.list()
    expect([status, value.error?.message]).toEqual([429, 'too many requests'])
    gateway.gone.add('file-1')
    expect((await gateway.list()).value).toEqual({
      ...{ object: 'list', data: [], has_more: false, first_id: null, last_id: null },
    })
  })
})
