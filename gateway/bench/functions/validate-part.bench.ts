import { bench, do_not_optimize, run } from 'mitata'
import { validatePart } from '../../src/config/load/validate.ts'

// Cost of validating one generated route among 1,000 backends (decision 028).

const surroundings = {
  gateways: { g: { port: 80, listeners: [{ name: 'a' }] } },
  backends: Array.from({ length: 1_000 }, (_, index) => ({
    name: `service-${index}`,
    endpoints: [{ host: '10.0.0.1:80' }],
  })),
}

const route = {
  name: 'HTTPRoute/shop/cart/0@a',
  gateways: ['g/a'],
  hostnames: ['cart.example.com'],
  matches: [
    { path: { pathPrefix: '/cart' } },
    { path: { exact: '/order' }, headers: [{ name: 'x-version', value: { exact: '1' } }] },
  ],
  policies: { urlRewrite: { authority: 'none' }, requestHeaderModifier: { set: { 'x-team': 'shop' } } },
  backends: [{ backend: '/service-500' }],
}

bench('route', () => do_not_optimize(validatePart({ kind: 'route', value: route }, surroundings)))

await run()
