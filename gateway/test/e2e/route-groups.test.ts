import { beforeAll, describe, expect, it } from 'vitest'
import { call } from '../support/http-call.ts'
import { type MockServer, startMockServer } from '../support/mock-server.ts'
import { type Routing, routing, routingConfig } from '../support/traffic.ts'
import { until } from '../support/wait.ts'

const prefix = (path: string, more: object = {}) => ({ matches: [{ path: { pathPrefix: path }, ...more }] })
const setHeader = (name: string) => ({ requestHeaderModifier: { set: { [name]: 'set' } } })

describe('route groups', () => {
  let backend: MockServer
  let running: Routing
  let config: Parameters<Routing['gateway']['reload']>[0]

  beforeAll(async () => {
    backend = await startMockServer((request, response) => {
      response.end(JSON.stringify({ ...request.headers, path: request.path }))
    }, 'file')
    const backends = [{ host: `127.0.0.1:${backend.port}` }]
    const delegate = (routeGroup: string) => ({ backends: [{ routeGroup }] })
    const needs = { headers: [{ name: 'x-team', value: { exact: 'a' } }] }
    const routes = [
      { name: 'parent', ...prefix('/api'), policies: setHeader('x-parent'), ...delegate('api') },
      { name: 'team', ...prefix('/team', needs), ...delegate('team') },
      { name: 'catch', ...prefix('/'), policies: setHeader('x-catch'), backends },
      {
        name: 'split',
        ...prefix('/split'),
        backends: [
          { routeGroup: 'one', weight: 1 },
          { routeGroup: 'none', weight: 0 },
        ],
      },
    ]
    routes.push({
      name: 'halves',
      ...prefix('/halves'),
      backends: ['half', 'other-half'].map((routeGroup) => ({ routeGroup, weight: 1 })),
    })
    const routeGroups = [
      {
        name: 'api',
        routes: [
          { name: 'users', ...prefix('/api/users'), backends },
          { name: 'own', ...prefix('/api/own'), policies: setHeader('x-child'), backends },
          { name: 'orders', ...prefix('/api/orders'), ...delegate('orders') },
          { name: 'outside', ...prefix('/other'), backends },
        ],
      },
      { name: 'orders', routes: [{ name: 'list', ...prefix('/api/orders/list'), backends }] },
      {
        name: 'team',
        routes: [
          {
            name: 'admin',
            ...prefix('/team/admin', { headers: [{ name: 'x-role', value: { exact: 'admin' } }] }),
            backends,
          },
          { name: 'rest', ...prefix('/team/rest'), backends },
        ],
      },
      { name: 'one', routes: [{ name: 'all', backends }] },
      { name: 'none', routes: [] },
      ...['half', 'other-half'].map((name) => ({ name, routes: [{ name, ...prefix('/halves'), backends }] })),
    ]
    running = await routing(routes, { routeGroups }, { lifetime: 'file' })
    config = routingConfig(running.port, routes, { routeGroups })
  })

  const ask = async (path: string, headers: Record<string, string> = {}) => {
    const { status, text } = await call(running.port, path, { headers })
    return status === 200 ? (JSON.parse(text) as Record<string, string>) : status
  }

  it('receive the requests of the route that refers to them', async () => {
    expect(await ask('/api/users/1')).toMatchObject({ path: '/api/users/1', 'x-parent': 'set' })
    expect(await ask('/api/orders/list')).toMatchObject({ 'x-parent': 'set' })
    expect(await ask('/split/x')).toMatchObject({ path: '/split/x' })
  })

  it('respond with 404 if none of their routes matches, also beside a route that would match', async () => {
    expect(await ask('/api/unknown')).toBe(404)
    expect(await ask('/api/orders/other')).toBe(404)
    expect(await ask('/other')).toMatchObject({ 'x-catch': 'set' })
  })

  it('apply the policies of both routes, those of the group first', async () => {
    const seen = await ask('/api/own')
    expect(seen).toMatchObject({ 'x-child': 'set' })
    expect(seen).not.toHaveProperty('x-parent')
  })

  it('require the conditions of both routes', async () => {
    const team = { 'x-team': 'a' }
    expect(await ask('/team/rest', team)).toMatchObject({ path: '/team/rest' })
    expect(await ask('/team/rest')).toMatchObject({ 'x-catch': 'set' })
    expect(await ask('/team/admin', team)).toBe(404)
    expect(await ask('/team/admin', { ...team, 'x-role': 'admin' })).toMatchObject({ path: '/team/admin' })
  })

  it('appear in log lines and metrics by the names of both routes', async () => {
    await ask('/api/orders/list')
    const isLogged = () => running.gateway.requests().some(({ route }) => route === 'parent/orders/list')
    expect(await until('a log line', isLogged)).toBe(true)
    expect(await running.gateway.metrics()).toContain('parent/orders/list')
  })

  it('receive paths with several readings by weight', async () => {
    for (let count = 0; count < 12; count += 1)
      expect(await ask('/halves/a%252Fb')).toMatchObject({ path: '/halves/a%252Fb' })
  })

  it('change with a reload', async () => {
    const [first, ...others] = config.routeGroups as { name: string; routes: object[] }[]
    const backends = [{ host: `127.0.0.1:${backend.port}` }]
    const routes = [...(first?.routes ?? []), { name: 'more', ...prefix('/api/unknown'), backends }]
    await running.gateway.reload({ ...config, routeGroups: [{ name: 'api', routes }, ...others] })
    expect(await ask('/api/unknown')).toMatchObject({ 'x-parent': 'set' })
    expect(await ask('/api/users')).toMatchObject({ 'x-parent': 'set' })
  })
})
