import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { stringify } from 'yaml'
import { endAfter } from './cleanup.ts'
import type { Gateway } from './gateway.ts'
import { until } from './wait.ts'

const gatewayApi = 'gateway.networking.k8s.io/v1'
export const own = 'tollgate.dev/v1alpha1'

export type Manifest = Record<string, unknown>

export const gatewayClass: Manifest = {
  apiVersion: gatewayApi,
  kind: 'GatewayClass',
  metadata: { name: 'tollgate' },
  spec: { controllerName: 'tollgate.dev/controller' },
}

export function gatewayOn(port: number, name = 'web'): Manifest {
  return {
    apiVersion: gatewayApi,
    kind: 'Gateway',
    metadata: { name },
    spec: { gatewayClassName: 'tollgate', listeners: [{ name: 'http', port, protocol: 'HTTP' }] },
  }
}

export function route(name: string, path: string, backend: Manifest): Manifest {
  return {
    apiVersion: gatewayApi,
    kind: 'HTTPRoute',
    metadata: { name },
    spec: {
      parentRefs: [{ name: 'web' }],
      rules: [{ matches: [{ path: { type: 'PathPrefix', value: path } }], backendRefs: [backend] }],
    },
  }
}

/** A Service with the server of a test. */
export function service(name: string, server: { readonly port: number }): Manifest[] {
  return [
    { apiVersion: 'v1', kind: 'Service', metadata: { name }, spec: { ports: [{ port: 80 }] } },
    {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name, labels: { 'kubernetes.io/service-name': name } },
      addressType: 'IPv4',
      endpoints: [{ addresses: ['127.0.0.1'] }],
      ports: [{ port: server.port }],
    },
  ]
}

/** A folder of manifests that ends with the test. */
export function manifestFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'manifests-test-'))
  endAfter('test', () => rmSync(folder, { recursive: true, force: true }))
  return {
    folder,
    write(name: string, ...manifests: readonly Manifest[]) {
      mkdirSync(dirname(join(folder, name)), { recursive: true })
      writeFileSync(join(folder, name), manifests.map((manifest) => stringify(manifest)).join('---\n'))
    },
    writeText(name: string, text: string) {
      writeFileSync(join(folder, name), text)
    },
  }
}

/** Waits until the gateway has applied or refused a change. */
export async function settled(gateway: Gateway, change: () => void) {
  const before = await gateway.status()
  change()
  return until('the change is applied or refused', async () => {
    const status = await gateway.status()
    return (status.revision !== before.revision || status.lastError !== before.lastError) && status
  })
}
