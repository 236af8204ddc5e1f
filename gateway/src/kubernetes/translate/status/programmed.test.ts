import { describe, expect, it } from 'vitest'
import type { Config } from '../../../config/schema.ts'
import { conditionsOf, satisfied, violated } from './conditions.ts'
import { type GatewayObjectStatus, type ProxyState, programmed } from './programmed.ts'

const metadata = { name: 'web', namespace: 'default', generation: 4 }
const config: Config = { gateways: { 80: { port: 80, listeners: [{ name: 'http', protocol: 'HTTP' }] } } }

const deployed: ProxyState = {
  acknowledgedGeneration: 4,
  errors: [],
  addresses: [{ type: 'IPAddress', value: '10.0.0.1' }],
  unusableAddresses: [],
  deploymentError: undefined,
}

const accepted: GatewayObjectStatus = {
  kind: 'Gateway',
  key: 'default/web',
  of: 'gateway',
  status: {
    conditions: conditionsOf({ metadata }, [satisfied('Accepted', 'Accepted')]),
    listeners: [
      {
        name: 'http',
        supportedKinds: [],
        attachedRoutes: 0,
        conditions: conditionsOf({ metadata }, [satisfied('Accepted', 'Accepted')]),
      },
      {
        name: 'https',
        supportedKinds: [],
        attachedRoutes: 0,
        conditions: conditionsOf({ metadata }, [
          satisfied('Accepted', 'Accepted'),
          violated('ResolvedRefs', 'InvalidCertificateRef', 'Secret a/x is not found'),
        ]),
      },
    ],
  },
}

/** `<status>/<reason>` of `Programmed`, by place. */
function result(state: Partial<ProxyState>, status = accepted, served: Config | undefined = config) {
  const { conditions = [], listeners = [] } = programmed(status, served, { ...deployed, ...state }).status
  const shown = (list: typeof conditions) => {
    const found = list.find(({ type }) => type === 'Programmed')
    return `${found?.status}/${found?.reason}`
  }
  return {
    gateway: shown(conditions),
    ...Object.fromEntries(listeners.map(({ name, conditions }) => [name, shown(conditions)])),
  }
}

describe('Programmed of a Gateway', () => {
  it('is true after a proxy has acknowledged the generation', () => {
    expect(result({})).toEqual({
      gateway: 'True/Programmed',
      http: 'True/Programmed',
      https: 'False/Invalid',
    })
  })

  it('is pending while only a previous generation is acknowledged', () => {
    for (const acknowledgedGeneration of [undefined, 3]) {
      expect(result({ acknowledgedGeneration })).toEqual({
        gateway: 'False/Pending',
        http: 'False/Pending',
        https: 'False/Invalid',
      })
    }
  })

  it('is false with the errors of proxies that refuse the first Config of the generation', () => {
    const state = { ...deployed, acknowledgedGeneration: 3, errors: ['a', 'b', 'c', 'd', 'e'] }
    const { conditions = [] } = programmed(accepted, config, state).status
    expect(conditions.find(({ type }) => type === 'Programmed')).toEqual({
      type: 'Programmed',
      status: 'False',
      reason: 'Invalid',
      message: 'proxies refuse the configuration: a; b; c; and 2 more',
      observedGeneration: 4,
    })
  })

  it('stays true with a message when a later Config of the same generation is refused', () => {
    const { conditions = [] } = programmed(accepted, config, { ...deployed, errors: ['port in use'] }).status
    expect(conditions.find(({ type }) => type === 'Programmed')).toMatchObject({
      status: 'True',
      message: 'proxies serve a previous configuration: port in use',
    })
  })

  it('is false without address, with an unusable one, and after a failed deployment', () => {
    expect(result({ addresses: [] })).toMatchObject({
      gateway: 'False/AddressNotAssigned',
      http: 'True/Programmed',
    })
    expect(result({ unusableAddresses: ['192.0.2.1'] }).gateway).toBe('False/AddressNotUsable')
    expect(result({ deploymentError: 'quota exceeded' }).gateway).toBe('False/DeploymentFailed')
  })

  it('is false if the Gateway is not accepted or no listener serves', () => {
    const refused = {
      ...accepted,
      status: { conditions: conditionsOf({ metadata }, [violated('Accepted', 'Invalid', 'no class')]) },
    }
    expect(result({}, refused).gateway).toBe('False/Invalid')
    expect(result({}, accepted, { gateways: {} })).toEqual({
      gateway: 'False/Invalid',
      http: 'False/Invalid',
      https: 'False/Invalid',
    })
  })

  it('is replaced when it is already present, and conditions stay sorted', () => {
    const once = programmed(accepted, config, { ...deployed, acknowledgedGeneration: 1 })
    const twice = programmed(once, config, deployed)
    expect(twice.status.conditions?.map(({ type, status }) => `${type}=${status}`)).toEqual([
      'Accepted=True',
      'Programmed=True',
    ])
  })

  it('has the addresses of the proxies', () => {
    expect(programmed(accepted, config, deployed).status.addresses).toEqual(deployed.addresses)
  })
})
