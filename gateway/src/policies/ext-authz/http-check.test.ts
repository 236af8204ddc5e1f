import { expect, it } from 'vitest'
import { fixtureContext, fixtureExchange } from '../../../test/fixtures/pipeline.ts'
import type { OutgoingRequest } from '../../net/http-client/send.ts'
import { compileHttpCheck } from './http-check.ts'

const setHeader = (value: string) => ({ requestHeaderModifier: { set: { 'x-from': value } } })

it.each([[{ host: 'service.test:80' }], [{ endpoints: [{ host: 'service.test:80' }] }]])(
  'the policies of a check apply over those of its named backend: %j',
  async (place) => {
    const sent: OutgoingRequest[] = []
    const http = { requestTimeout: '7s' }
    const context = {
      ...fixtureContext(),
      backends: [{ name: 'service', ...place, policies: { ...setHeader('backend'), http } }],
      send(request: OutgoingRequest) {
        sent.push(request)
        return Promise.resolve({ status: 200, headers: {}, body: undefined })
      },
    }
    const ask = async (policies?: object) => {
      const config = { backend: '/service', protocol: { http: {} }, ...(policies && { policies }) }
      const exchange = fixtureExchange()
      const { ask: send, timeoutMs } = compileHttpCheck(config, context, new Set(['request']))
      await send({ exchange, facts: exchange.facts, body: undefined }, 1_000)
      return [sent.at(-1)?.headers['x-from'], timeoutMs]
    }
    expect(await ask(setHeader('check'))).toEqual(['check', 7_000])
    expect(await ask()).toEqual(['backend', 7_000])
  },
)
