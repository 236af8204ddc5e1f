import { describe, expect, it } from 'vitest'
import { fixtureContext } from '../../../test/fixtures/pipeline.ts'
import {
  createMemoryDatabase,
  type Replica,
  startFileMode,
  startHybrid,
} from '../../../test/fixtures/resources.ts'
import { readCostsOf } from '../../config/cost-snapshot.ts'
import { systemClock } from '../../lib/clock.ts'
import { createWorkQueue } from '../../lib/scheduling/work-queue.ts'
import { createAdminApi } from '../api.ts'
import { costsEndpoint } from './costs.ts'

const price = (input: string) => ({ providers: { openai: { models: { m: { rates: { input } } } } } })

const config = `
config:
  modelCatalog:
    - inline: ${JSON.stringify(price('1'))}
    - inline: { providers: { openai: { models: { m: { rates: { output: '9' } } } } } }
llm: { models: [] }
`

async function costsOf(replica: Replica, query = '') {
  const api = createAdminApi({
    endpoints: [
      costsEndpoint({
        resources: replica.resources,
        read: async (wanted) => readCostsOf(replica.running(), fixtureContext(), wanted),
      }),
    ],
    next: () => Promise.reject(new Error('not the endpoint of costs')),
    workQueue: createWorkQueue(systemClock),
    log: replica.log,
  })
  const target = `/api/costs${query}`
  const reply = await api({ method: 'GET', target, headers: {}, body: Buffer.from(''), address: '::1' })
  const body = JSON.parse(Buffer.from(reply.body as Uint8Array).toString()) as never
  return { status: reply.status, body }
}

describe('the list of costs', () => {
  it('names the last inline catalog of a file as custom', async () => {
    const replica = await startFileMode(config)
    expect(await costsOf(replica)).toMatchObject({
      status: 200,
      body: {
        catalogs: [
          { source: 'inline', models: 1 },
          { source: 'custom', models: 1 },
        ],
        models: [{ provider: 'openai', model: 'm', sources: { input: 0, output: 1 } }],
      },
    })
  })

  it('names the catalogs of the database, and those of the file after them', async () => {
    const replica = await startHybrid(createMemoryDatabase(systemClock).open(), systemClock, config)
    expect((await costsOf(replica)).body).toMatchObject({
      catalogs: [{ source: 'inline' }, { source: 'inline' }],
    })
    const value = { base: price('3'), custom: price('4') }
    expect((await replica.call('PUT', '/modelCatalog', { resources: [{ value }] })).status).toBe(200)
    expect((await costsOf(replica)).body).toMatchObject({
      catalogs: [
        { source: 'base', models: 0 },
        { source: 'custom', models: 0 },
        { source: 'inline', models: 1 },
        { source: 'inline', models: 1 },
      ],
      models: [{ rates: { input: '1', output: '9' } }],
    })
    expect((await costsOf(replica, '?source=custom')).body).toMatchObject({ models: [] })
    expect((await costsOf(replica, '?source=inline')).body).toMatchObject({ total: 1 })
  })

  it('is empty without a catalog', async () => {
    const replica = await startFileMode('llm: { models: [] }')
    expect((await costsOf(replica)).body).toMatchObject({ catalogs: [], models: [], total: 0 })
    expect((await costsOf(replica, '?source=base')).body).toMatchObject({ models: [] })
  })

  it.each(['?limit=0', '?limit=501', '?limit=x', '?source=none', `?search=${'x'.repeat(201)}`, '?page=1'])(
    'refuses %s',
    async (query) => {
      const replica = await startFileMode(config)
      expect((await costsOf(replica, query)).status).toBe(400)
    },
  )
})
