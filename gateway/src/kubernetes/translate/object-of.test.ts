import { expect, it } from 'vitest'
import type { Config } from '../../config/schema.ts'
import { objectOf } from './object-of.ts'

const config: Config = {
  gateways: { '80': { port: 80 } },
  routes: [{ name: 'HTTPRoute/shop/web/0@http', gateways: '80', backends: [] }],
  backends: [
    { name: 'Service/shop/web:80', host: 'localhost:80' },
    { name: 'unresolved/Service/shop/lost:80', host: 'localhost:80' },
  ],
}

it.each([
  [['gateways', '80', 'port'], 'Gateway/shop/gw'],
  [['routes', 0], 'HTTPRoute/shop/web'],
  [['routes', 0, 'policies'], 'HTTPRoute/shop/web'],
  [['backends', 0], 'Service/shop/web'],
  [['backends', 1], 'Service/shop/lost'],
  [['routes', 1], undefined],
  [['config'], undefined],
])('finds the object of %j', (path, object) => {
  expect(objectOf(config, path, 'shop/gw')).toBe(object)
})
