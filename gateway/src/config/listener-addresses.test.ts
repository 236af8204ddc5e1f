import { expect, it } from 'vitest'
import { listenerAddresses } from './listener-addresses.ts'

it('lists listeners with their purposes', () => {
  const found = listenerAddresses({
    gateways: {
      default: { port: 8080 },
      b: { port: 8443, listeners: [{ name: 'x', hostname: 'x.test', tls: {} }, { hostname: 'y.test' }] },
      raw: { port: 9000, protocol: 'TCP' },
    },
    routes: [{ gateways: 'b/x' }, {}],
    tcpRoutes: [{ gateways: 'raw', backends: [] }],
    llm: {},
    mcp: { port: 3000 },
    ui: { gateways: ['b'] },
  })
  const common = { address: '::' }
  expect(found).toEqual([
    {
      ...{ ...common, gateway: 'default', name: 'default', port: 8080, protocol: 'HTTP', tls: false },
      ...{ hostname: undefined, serves: ['routes', 'llm'] },
    },
    {
      ...{ ...common, gateway: 'b', name: 'b/x', port: 8443, protocol: 'HTTPS', tls: true },
      ...{ hostname: 'x.test', serves: ['routes', 'ui'] },
    },
    {
      ...{ ...common, gateway: 'b', name: 'b/1', port: 8443, protocol: 'HTTP', tls: false },
      ...{ hostname: 'y.test', serves: ['ui'] },
    },
    {
      ...{ ...common, gateway: 'raw', name: 'raw', port: 9000, protocol: 'TCP', tls: false },
      ...{ hostname: undefined, serves: ['tcpRoutes'] },
    },
    {
      ...{ ...common, gateway: 'mcp', name: 'mcp', port: 3000, protocol: 'HTTP', tls: false },
      ...{ hostname: undefined, serves: ['mcp'] },
    },
  ])
})

it('omits a section without an address', () => {
  expect(listenerAddresses({ config: { bindAddress: '10.0.0.1' }, llm: {} })).toMatchObject([
    { gateway: 'llm', address: '10.0.0.1', port: 4000 },
  ])
})
