import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { freePorts } from '../support/free-port.ts'
import { type Gateway, runTollgate, startGateway } from '../support/gateway.ts'
import {
  gatewayClass,
  gatewayOn,
  type Manifest,
  manifestFolder,
  own,
  route,
  service,
  settled,
} from '../support/manifests.ts'
import { startMockServer } from '../support/mock-server.ts'
import { until } from '../support/wait.ts'

function limit(requests: number): Manifest {
  return {
    apiVersion: own,
    kind: 'GatewayPolicy',
    metadata: { name: 'limit' },
    spec: {
      targetRefs: [{ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', name: 'shop' }],
      traffic: { rateLimit: { local: [{ requests, unit: 'Hours' }] } },
    },
  }
}

async function start(folder: string, args: readonly string[] = []): Promise<Gateway> {
  return startGateway({}, { args: ['--manifests', folder, ...args] })
}

describe('a gateway of manifests', () => {
  it('routes to Services, applies policies, and reloads changed files', async () => {
    const shop = await startMockServer((_request, response) => response.end('shop'))
    const news = await startMockServer((_request, response) => response.end('news'))
    const [port = 0] = await freePorts(1)
    const { folder, write } = manifestFolder()
    write('gateway.yaml', gatewayClass, gatewayOn(port))
    write('apps/shop.yaml', route('shop', '/shop', { name: 'shop', port: 80 }), ...service('shop', shop))
    write('apps/limit.yml', limit(2))
    const gateway = await start(folder)
    const call = (path: string) => fetch(`http://127.0.0.1:${port}${path}`)
    expect(await (await call('/shop/1')).text()).toBe('shop')
    expect(shop.seen[0]?.headers.host).toBe(`127.0.0.1:${port}`)
    expect((await call('/shop/2')).status).toBe(200)
    expect((await call('/shop/3')).status).toBe(429)
    expect((await call('/news')).status).toBe(404)

    await settled(gateway, () =>
      write('apps/news.yaml', route('news', '/news', { name: 'news', port: 80 }), ...service('news', news)),
    )
    expect(await (await call('/news')).text()).toBe('news')
    expect((await call('/shop/4')).status, 'the bucket survives the change of a neighbour').toBe(429)
  })

  it('serves models of a GatewayBackend', async () => {
    const [port = 0] = await freePorts(1)
    const { folder, write } = manifestFolder()
    write(
      'all.yaml',
      gatewayClass,
      gatewayOn(port),
      {
        apiVersion: own,
        kind: 'GatewayBackend',
        metadata: { name: 'models' },
        spec: { ai: { provider: { echo: {} } } },
      },
      route('models', '/', { group: 'tollgate.dev', kind: 'GatewayBackend', name: 'models' }),
    )
    await start(folder)
    const response = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'any', messages: [{ role: 'user', content: 'repeat this' }] }),
    })
    expect(await response.text()).toContain('repeat this')
  })

  it('serves the neighbours of a broken object, and reports it', async () => {
    const shop = await startMockServer((_request, response) => response.end('shop'))
    const [port = 0] = await freePorts(1)
    const { folder, write } = manifestFolder()
    write('gateway.yaml', gatewayClass, gatewayOn(port))
    write('shop.yaml', route('shop', '/shop', { name: 'shop', port: 80 }), ...service('shop', shop))
    write('broken.yaml', route('broken', '/broken', { name: 'broken', port: 'http' }))
    const gateway = await start(folder)
    expect((await fetch(`http://127.0.0.1:${port}/shop`)).status).toBe(200)
    await until('the object is reported', () =>
      /broken\.yaml:1: HTTPRoute default\/broken: .*spec\.rules\[0\]\.backendRefs\[0\]\.port/.test(
        gateway.stdout(),
      ),
    )
  })

  it('retains its configuration while a file does not parse', async () => {
    const shop = await startMockServer((_request, response) => response.end('shop'))
    const [port = 0] = await freePorts(1)
    const { folder, write, writeText } = manifestFolder()
    write('gateway.yaml', gatewayClass, gatewayOn(port))
    write('shop.yaml', route('shop', '/shop', { name: 'shop', port: 80 }), ...service('shop', shop))
    write('limit.yaml', limit(1))
    const gateway = await start(folder)
    const call = async () => (await fetch(`http://127.0.0.1:${port}/shop`)).status
    expect(await call()).toBe(200)
    const refused = await settled(gateway, () => writeText('limit.yaml', 'kind: [GatewayPolicy\n'))
    expect(refused).toMatchObject({ synchronized: false, revision: 1 })
    expect(refused.lastError).toContain('limit.yaml:')
    expect(await call()).toBe(429)
    const repaired = await settled(gateway, () => rmSync(join(folder, 'limit.yaml')))
    expect(repaired).toMatchObject({ synchronized: true })
    expect(await call()).toBe(200)
  })

  it('refuses changes through the config API, and names the object of each part', async () => {
    const shop = await startMockServer((_request, response) => response.end('shop'))
    const [port = 0] = await freePorts(1)
    const { folder, write } = manifestFolder()
    write('gateway.yaml', gatewayClass, gatewayOn(port))
    write('shop.yaml', route('shop', '/shop', { name: 'shop', port: 80 }), ...service('shop', shop))
    const gateway = await start(folder)
    const api = `http://127.0.0.1:${gateway.adminPort}/api/config`
    const put = await fetch(`${api}/resources/traffic.route`, {
      method: 'PUT',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ resources: [{ value: { name: 'new', backends: [] } }] }),
    })
    expect(put.status).toBe(403)
    expect(await put.text()).toContain(`the configuration comes from the manifests in ${folder}`)
    const effective = await (await fetch(`${api}/effective`)).json()
    expect(effective).toMatchObject({
      sources: expect.arrayContaining([
        expect.objectContaining({ path: 'routes[0]', source: 'object', object: 'HTTPRoute/default/shop' }),
        expect.objectContaining({ path: 'backends[0]', object: 'Service/default/shop' }),
        expect.objectContaining({ object: 'Gateway/default/web' }),
      ]),
    })
    expect(await gateway.status()).toMatchObject({ storage: { mode: 'objects' } })
  })

  it('serves the named Gateway, and refuses to choose among several', async () => {
    const [port = 0, other = 0] = await freePorts(2)
    const { folder, write } = manifestFolder()
    write('gateways.yaml', gatewayClass, gatewayOn(port), gatewayOn(other, 'other'))
    const refused = await runTollgate(['--manifests', folder])
    expect(refused.code).toBe(1)
    expect(refused.stderr).toContain('name one with --gateway: default/other, default/web')
    const unknown = await runTollgate(['--manifests', folder, '--gateway', 'default/none'])
    expect(unknown.stderr).toContain('Gateway "default/none" is not in the manifests')
    await start(folder, ['--gateway', 'default/other'])
    expect((await fetch(`http://127.0.0.1:${other}/`)).status).toBe(404)
    await expect(fetch(`http://127.0.0.1:${port}/`)).rejects.toThrow()
  })
})

describe('the command check', () => {
  it('prints the conditions of objects, and succeeds if all are accepted', async () => {
    const shop = await startMockServer((_request, response) => response.end('shop'))
    const { folder, write } = manifestFolder()
    write('gateway.yaml', gatewayClass, gatewayOn(8080))
    write('shop.yaml', route('shop', '/shop', { name: 'shop', port: 80 }), ...service('shop', shop))
    const { code, stdout } = await runTollgate(['check', folder])
    expect(stdout).toContain('ok       HTTPRoute default/shop  (shop.yaml:1)')
    expect(stdout).toContain('objects: 3, not accepted: 0, errors: 0, warnings: 0')
    expect(code).toBe(0)
  })

  it('fails for refused objects, objects without a Gateway, and files that do not parse', async () => {
    const { folder, write, writeText } = manifestFolder()
    write('gateway.yaml', gatewayClass, gatewayOn(8080), {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'shop' },
    })
    write('route.yaml', route('shop', '/shop', { name: 'missing', port: 80 }))
    write('lost.yaml', {
      ...route('lost', '/', { name: 'missing', port: 80 }),
      spec: { parentRefs: [{ name: 'none' }] },
    })
    writeText('half.yaml', 'a: "\n')
    const { code, stdout } = await runTollgate(['check', folder, '--output', 'json'])
    expect(code).toBe(1)
    const report: unknown = JSON.parse(stdout)
    expect(report).toMatchObject({
      accepted: false,
      errors: [{ file: 'half.yaml', line: expect.any(Number) }],
      warnings: [{ file: 'gateway.yaml', message: 'Deployment of apps/v1 is not read' }],
      objects: expect.arrayContaining([
        expect.objectContaining({ kind: 'HTTPRoute', key: 'default/lost', outcome: 'detached' }),
        expect.objectContaining({ kind: 'HTTPRoute', key: 'default/shop', outcome: 'refused' }),
      ]),
    })
    const text = await runTollgate(['check', folder])
    expect(text.stdout).toContain('ResolvedRefs=False')
  })

  it('refuses a folder that does not exist', async () => {
    const { code, stderr } = await runTollgate(['check', '/does/not/exist'])
    expect(code).toBe(1)
    expect(stderr).toContain('cannot read the manifests /does/not/exist: there is no such file')
  })
})
