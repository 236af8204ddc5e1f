import { execFileSync } from 'node:child_process'
import { globSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../../support/wait.ts'
import { type Cluster, root } from './environment.ts'
import { application, gateway, httpRoute, namespace, namespaceObject, parameters, toEcho } from './objects.ts'

const system = 'tollgate-system'
const startMs = 120_000

/** Installs the controller as shipped, and an application behind a Gateway. Does nothing a second time. */
export async function install(cluster: Cluster): Promise<void> {
  const { kubectl } = cluster
  for (const folder of ['crds', 'manifests'])
    for (const file of globSync(`deploy/${folder}/*.yaml`, { cwd: root }).sort())
      await kubectl('apply', '-f', join(root, file))
  await adaptDeployment(cluster)
  await kubectl('-n', system, 'rollout', 'status', 'deployment/tollgate-controller', '--timeout=120s')
  await cluster.apply(namespaceObject)
  await cluster.apply(
    ...application('echo', 'soak-echo', 3_000, 2),
    ...application('webhook', 'soak-webhook', 8_000),
    parameters,
    gateway,
    httpRoute('echo', 'echo.example', toEcho),
  )
  await until('the Gateway is programmed', () => isProgrammed(cluster), startMs)
  for (const name of ['echo', 'webhook', 'web-tollgate'])
    await kubectl('-n', namespace, 'rollout', 'status', `deployment/${name}`, '--timeout=120s')
}

/**
 * Adapts the Deployment to Pods that are processes: without DNS, proxies reach the controller by the address
 * of its Service. `/var/run` of these Pods is not writable, so a kubeconfig names the token of the account.
 */
async function adaptDeployment(cluster: Cluster): Promise<void> {
  const { kubectl } = cluster
  const service = ['-n', system, 'get', 'service', 'tollgate-controller']
  const address = await kubectl(...service, '-o', 'jsonpath={.spec.clusterIP}')
  const folder = '/account'
  const kubeconfig = {
    'current-context': 'pod',
    contexts: [{ name: 'pod', context: { cluster: 'pod', user: 'pod', namespace: system } }],
    clusters: [
      {
        name: 'pod',
        cluster: { server: 'https://198.18.0.1:6443', 'certificate-authority': `${folder}/ca.crt` },
      },
    ],
    users: [{ name: 'pod', user: { tokenFile: `${folder}/token` } }],
  }
  const metadata = { name: 'soak-kubeconfig', namespace: system }
  const data = { config: JSON.stringify(kubeconfig) }
  await cluster.apply({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data })
  const sources = [
    { serviceAccountToken: { path: 'token', expirationSeconds: 3_607 } },
    { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
    { configMap: { name: metadata.name, items: [{ key: 'config', path: 'config' }] } },
  ]
  const env = [
    { name: 'KUBECONFIG', value: `${folder}/config` },
    { name: 'CONTROLLER_URL', value: `https://${address}:15012` },
    { name: 'LOG_LEVEL', value: 'debug' },
  ]
  const container = { name: 'controller', env, volumeMounts: [{ name: 'account', mountPath: folder }] }
  const spec = { containers: [container], volumes: [{ name: 'account', projected: { sources } }] }
  const patch = JSON.stringify({ spec: { template: { spec } } })
  await kubectl('-n', system, 'patch', 'deployment', 'tollgate-controller', '--patch', patch)
}

export async function isProgrammed({ kubectl }: Cluster): Promise<boolean> {
  const path = 'jsonpath={.status.conditions[?(@.type=="Programmed")].status}'
  return (await kubectl('-n', namespace, 'get', 'gateway', 'web', '-o', path)) === 'True'
}

export async function addressOf({ kubectl }: Cluster): Promise<string> {
  return kubectl('-n', namespace, 'get', 'gateway', 'web', '-o', 'jsonpath={.status.addresses[0].value}')
}

/** Process ids of a container, outside its network. */
export function processesOf(pattern: string): number[] {
  try {
    return execFileSync('pgrep', ['-f', pattern]).toString().trim().split('\n').map(Number)
  } catch {
    return []
  }
}
