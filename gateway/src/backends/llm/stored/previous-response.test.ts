import { expect, it } from 'vitest'
import { call, fixtureGateway, jsonReply } from '../../../../test/fixtures/llm.ts'
import type { LlmConfig } from '../config/config.ts'

const target = (name: string, host: string) => ({
  name,
  provider: 'openai' as const,
  params: { apiKey: 'k', baseUrl: `https://${host}.test/v1` },
})

const config: LlmConfig = {
  models: [target('large', 'one'), target('small', 'two')],
  virtualModels: [
    {
      name: 'any',
      routing: {
        conditional: {
          targets: [{ model: 'large', when: 'request.headers["x-tier"] == "paid"' }, { model: 'small' }],
        },
      },
    },
  ],
}

function responses() {
  const gateway = fixtureGateway(config, () =>
    jsonReply({ id: 'resp_12345', object: 'response', status: 'completed', output: [] }),
  )
  const create = (body: object, headers = {}) =>
    call(gateway, { path: '/v1/responses', body: { input: 'x', ...body }, headers })
  return { gateway, create }
}

it('serves a request for the model of the previous response by its provider', async () => {
  const { gateway, create } = responses()
  const { id } = JSON.parse((await create({ model: 'any' }, { 'x-tier': 'paid' })).text)
  const next = await create({ model: 'any', previous_response_id: id })
  expect(next.status).toBe(200)
  expect(gateway.sent.map(({ origin }) => origin)).toEqual(['https://one.test', 'https://one.test'])
})

it('requests the configured model of an entry that the virtual model does not choose again', async () => {
  const models = [{ ...target('large', 'one'), overrides: { model: 'gpt-real' } }, target('small', 'two')]
  const gateway = fixtureGateway({ ...config, models }, () =>
    jsonReply({ id: 'resp_12345', object: 'response', status: 'completed', output: [] }),
  )
  const create = (body: object, headers = {}) =>
    call(gateway, { path: '/v1/responses', body: { input: 'x', model: 'any', ...body }, headers })
  const { id } = JSON.parse((await create({}, { 'x-tier': 'paid' })).text)
  await create({ previous_response_id: id })
  expect(gateway.sent.map(({ body }) => JSON.parse(String(body)).model)).toEqual(['gpt-real', 'gpt-real'])
})

it('reads the id of a response with the longest model name', async () => {
  const gateway = fixtureGateway({ models: [{ ...target('*', 'one') }] }, () =>
    jsonReply({ id: 'resp_12345', object: 'response', status: 'completed', output: [] }),
  )
  const create = (body: object) => call(gateway, { path: '/v1/responses', body: { input: 'x', ...body } })
  const model = '\u{0}\u{ffff}'.repeat(256)
  const { id } = JSON.parse((await create({ model })).text)
  expect((await create({ model, previous_response_id: id })).status).toBe(200)
  const tooLong = await create({ model: `${model}x` })
  expect([tooLong.status, tooLong.text]).toEqual([400, expect.stringContaining('at most 512 characters')])
})

it('refuses a request for another model than that of the previous response', async () => {
  const { gateway, create } = responses()
  const { id } = JSON.parse((await create({ model: 'large' })).text)
  const next = await create({ model: 'small', previous_response_id: id })
  expect([next.status, next.text]).toEqual([400, expect.stringContaining('does not serve this model')])
  expect(gateway.sent).toHaveLength(1)
})
