import { expect, it } from 'vitest'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { keyedEcho, resourceApi, sqliteUrl, stored } from '../support/resource-api.ts'

/** A gateway killed at the moment of its response has already written the audit line. */

async function killed(gateway: Gateway): Promise<object[]> {
  gateway.child.kill('SIGKILL')
  await gateway.exited
  return gateway
    .stdout()
    .split('\n')
    .filter((line) => line.includes('"audit"'))
    .map((line): { audit: object } => JSON.parse(line))
    .map(({ audit }) => audit)
}

it.each([
  ['file', undefined],
  ['hybrid', sqliteUrl],
] as const)('in %s mode the line of a change is written before the answer', async (_, url) => {
  const gateway = await startGateway(stored(keyedEcho, url?.()), { mayCrash: true })
  const { id } = await resourceApi(gateway).create('llm.apiKey', {
    key: 'tg-secret',
    metadata: { name: 'ada' },
  })
  const audits = await killed(gateway)
  expect(audits).toMatchObject([
    { op: 'put', kind: 'llm.apiKey', id, changed: [{ field: 'key', after: '"***"' }, { field: 'metadata' }] },
  ])
  expect(gateway.stdout()).not.toContain('tg-secret')
})

it('the line of a read of secrets is written before the answer', async () => {
  const gateway = await startGateway(stored(keyedEcho, sqliteUrl()), { mayCrash: true })
  const api = resourceApi(gateway)
  await api.create('llm.apiKey', { key: 'tg-secret' })
  const masked = await api.ask('GET', '/llm.apiKey')
  expect(masked.body).toMatchObject({ resources: [{ value: { key: '***' } }] })
  expect(await api.list('llm.apiKey')).toMatchObject([{ value: { key: 'tg-secret' } }])
  expect((await killed(gateway)).at(-1)).toMatchObject({
    op: 'reveal',
    kind: 'llm.apiKey',
    address: '127.0.0.1',
  })
})

it('audit records are written at every log level', async () => {
  const config = stored(keyedEcho, sqliteUrl())
  const quiet = { ...config, config: { ...config.config, logging: { level: 'error' } } }
  const gateway = await startGateway(quiet, { mayCrash: true })
  await resourceApi(gateway).create('llm.apiKey', { key: 'tg-secret' })
  expect(await killed(gateway)).toMatchObject([{ op: 'put', kind: 'llm.apiKey' }])
  expect(gateway.stdout()).not.toContain('"msg":"request"')
})
