import { type Gateway, type GatewayConfig, startGateway } from './gateway.ts'

/**
 * Serves the configurations of the tests of a file by one gateway, one after the other: a reload takes a
 * tenth of a start. Not for tests that read the whole log or counters.
 */
export function sharedGateway(): (config: GatewayConfig) => Promise<Gateway> {
  let gateway: Gateway | undefined
  let current = ''
  return async (config) => {
    const text = JSON.stringify(config)
    if (gateway === undefined) gateway = await startGateway(config, { lifetime: 'file' })
    else if (text !== current) await gateway.reload(config)
    current = text
    return gateway
  }
}
