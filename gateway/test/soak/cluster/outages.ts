import { spawn } from 'node:child_process'
import { globSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { until } from '../../support/wait.ts'
import type { Cluster } from './environment.ts'
import { addressOf } from './install.ts'
import { httpRoute, toEcho } from './objects.ts'
import { call, steadyTraffic } from './traffic.ts'

const convergenceMs = 60_000
const outageMs = 20_000

/** Waits until a route serves; the result is the time in milliseconds. */
async function served(address: string, host: string): Promise<number> {
  const startedAt = performance.now()
  const ask = async () => (await call(address, { host }).catch(() => undefined))?.status === 200
  await until(`${host} is served`, ask, convergenceMs)
  return Math.round(performance.now() - startedAt)
}

/** Processes of the controller: the leader first. */
async function controllerProcesses({ kubectl }: Cluster): Promise<number[]> {
  const lease = [
    '-n',
    'tollgate-system',
    'get',
    'lease',
    'tollgate-controller',
    '-o',
    'jsonpath={.spec.holderIdentity}',
  ]
  const leader = await kubectl(...lease)
  const found = processes('controller')
  return found.sort((a, b) => Number(podOf(b) === leader) - Number(podOf(a) === leader))
}

/** Processes of this cluster that run a command of the gateway. */
function processes(command: string): number[] {
  const own = process.env['TOLLGATE_KUBE_STATE'] ?? ''
  return pids().filter((pid) => {
    const words = read(`/proc/${pid}/cmdline`).split('\0')
    return (
      words[1]?.endsWith('tollgate.js') === true &&
      words[2] === command &&
      environmentOf(pid).includes(`TOLLGATE_KUBE_POD_OF=${own}`)
    )
  })
}

function podOf(pid: number): string | undefined {
  return environmentOf(pid)
    .find((variable) => variable.startsWith('POD_NAME='))
    ?.slice('POD_NAME='.length)
}

function environmentOf(pid: number): string[] {
  return read(`/proc/${pid}/environ`).split('\0')
}

function pids(): number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => Number.isInteger(pid))
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

/** The leader is killed while routes change: another replica takes over, and traffic does not notice. */
export async function controllerKilled(cluster: Cluster): Promise<string> {
  const address = await addressOf(cluster)
  const traffic = steadyTraffic(address, 'echo.example')
  const [leader] = await controllerProcesses(cluster)
  if (leader === undefined) throw new Error('no process of the controller')
  await cluster.apply(
    ...Array.from({ length: 50 }, (_, index) => httpRoute(`k${index}`, `k${index}.example`, toEcho)),
  )
  process.kill(leader, 'SIGKILL')
  await cluster.apply(httpRoute('after-kill', 'after-kill.example', toEcho))
  const ms = await served(address, 'after-kill.example')
  await served(address, 'k49.example')
  await until(
    'the statuses',
    async () => {
      const accepted = await cluster.kubectl(
        ...[
          '-n',
          'soak',
          'get',
          'httproute',
          'after-kill',
          '-o',
          'jsonpath={.status.parents[0].conditions[?(@.type=="Accepted")].status}',
        ],
      )
      return accepted === 'True'
    },
    convergenceMs,
  )
  const { sent, failures } = await traffic.stop()
  if (failures.length > 0) throw new Error(`${failures.length} of ${sent} failed: ${failures.slice(0, 3)}`)
  return `route served ${ms} ms after apply, ${sent} requests without a failure`
}

/** The API server is killed: traffic continues, and changes are served once it is back. */
export async function apiServerKilled(cluster: Cluster): Promise<string> {
  const address = await addressOf(cluster)
  const file = join(cluster.state, 'kube-apiserver.pid')
  const pid = Number(readFileSync(file, 'utf8'))
  const command = read(`/proc/${pid}/cmdline`).split('\0').filter(Boolean)
  const traffic = steadyTraffic(address, 'echo.example')
  process.kill(pid, 'SIGKILL')
  await delay(outageMs)
  const [program = '', ...args] = command
  const child = spawn(program, args, { stdio: 'ignore', detached: true })
  child.unref()
  writeFileSync(file, String(child.pid))
  await until(
    'the API server',
    () => cluster.kubectl('get', '--raw', '/readyz').catch(() => undefined),
    120_000,
  )
  const { sent, failures } = await traffic.stop()
  if (failures.length > 0) throw new Error(`${failures.length} of ${sent} failed: ${failures.slice(0, 3)}`)
  await cluster.apply(httpRoute('after-outage', 'after-outage.example', toEcho))
  const ms = await served(address, 'after-outage.example')
  return `${sent} requests during ${outageMs / 1000} s without a failure, then a route served in ${ms} ms`
}

/** The leader is stopped until its lease is lost, and continues: only one of the two writes. */
export async function leaseLost(cluster: Cluster): Promise<string> {
  const address = await addressOf(cluster)
  const [leader] = await controllerProcesses(cluster)
  if (leader === undefined) throw new Error('no process of the controller')
  const before = podOf(leader)
  process.kill(leader, 'SIGSTOP')
  try {
    await until(
      'another leader',
      async () => {
        const holder = await cluster.kubectl(
          ...[
            '-n',
            'tollgate-system',
            'get',
            'lease',
            'tollgate-controller',
            '-o',
            'jsonpath={.spec.holderIdentity}',
          ],
        )
        return holder !== '' && holder !== before
      },
      convergenceMs,
    )
  } finally {
    process.kill(leader, 'SIGCONT')
  }
  await cluster.apply(httpRoute('after-lease', 'after-lease.example', toEcho))
  const ms = await served(address, 'after-lease.example')
  await delay(3_000)
  const versions = async () =>
    cluster.kubectl(
      '-n',
      'soak',
      'get',
      'httproute,gateway',
      '-o',
      'jsonpath={.items[*].metadata.resourceVersion}',
    )
  const settled = await versions()
  await delay(10_000)
  if ((await versions()) !== settled) throw new Error('statuses do not come to rest')
  return `route served ${ms} ms after apply, statuses at rest`
}

/** 1,000 broken routes beside a good one. */
export async function brokenObjects(cluster: Cluster): Promise<string> {
  const address = await addressOf(cluster)
  const broken = Array.from({ length: 1_000 }, (_, index) =>
    httpRoute(`broken-${index}`, `broken-${index}.example`, {
      backendRefs: [{ name: `absent-${index}`, port: 80 }],
    }),
  )
  await cluster.apply(...broken)
  await cluster.apply(httpRoute('beside', 'beside.example', toEcho))
  const ms = await served(address, 'beside.example')
  await until(
    'a status of each',
    async () => {
      const reasons = await cluster.kubectl(
        ...[
          '-n',
          'soak',
          'get',
          'httproute',
          '-o',
          'jsonpath={.items[*].status.parents[0].conditions[?(@.type=="ResolvedRefs")].reason}',
        ],
      )
      return reasons.split(' ').filter((reason) => reason === 'BackendNotFound').length >= broken.length
    },
    convergenceMs,
  )
  const answer = await call(address, { host: 'broken-7.example' })
  if (answer.status !== 500) throw new Error(`a broken route answers ${answer.status}`)
  await cluster.kubectl(
    '-n',
    'soak',
    'delete',
    '--wait=false',
    'httproute',
    ...broken.map((_, index) => `broken-${index}`),
  )
  return `good route served in ${ms} ms, all 1000 have their condition`
}

/** The shipped rights suffice, and permit no more than necessary. */
export async function rights({ kubectl, state }: Cluster): Promise<string> {
  const account = '--as=system:serviceaccount:tollgate-system:tollgate-controller'
  const can = async (...words: string[]) =>
    (
      await kubectl('auth', 'can-i', ...words, account).catch(
        (error: { stdout?: string }) => error.stdout ?? '',
      )
    ).trim()
  const denied = [
    ['create', 'pods'],
    ['list', 'nodes'],
    ['delete', 'namespaces'],
    ['update', 'httproutes.gateway.networking.k8s.io'],
    ['create', 'clusterrolebindings.rbac.authorization.k8s.io'],
    ['impersonate', 'users'],
  ]
  for (const words of denied)
    if ((await can(...words)) !== 'no') throw new Error(`the controller can ${words.join(' ')}`)
  const logs = globSync(join(state, 'pods', 'tollgate-system_*', '*.log')).flatMap((file) =>
    readFileSync(file, 'utf8').split('\n'),
  )
  const forbidden = logs.filter((line) => line.includes('is forbidden'))
  if (forbidden.length > 0) throw new Error(`refused calls: ${forbidden.slice(0, 3).join('\n')}`)
  return `${denied.length} rights absent, no refused call in ${logs.length} log lines`
}
