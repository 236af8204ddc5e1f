import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { Agent, createServer, request } from 'node:http'
import { connect as connectHttp2 } from 'node:http2'
import { connect, createServer as createTcpServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { WebSocket, WebSocketServer } from 'ws'
import { residentMebibytes, stop, stopAll, track } from '../../bench/subjects/processes.ts'
import { freePort } from '../support/free-port.ts'

/**
 * Traffic of all kinds on a route that no change touches, while the file changes at random in everything
 * around it, every few times to something broken: no request fails, every change is applied, and memory and
 * descriptors stay.
 */

const short = process.argv.includes('--short')
const minutes = Number(process.argv.at(-1)) || 10
const durationMs = short ? 6_000 : minutes * 60_000
const appliedWithinMs = 15_000
/** A short run is still warming up, so it only sees gross leaks. */
const allowedGrowth = short ? 2.5 : 1.3
/** Kept-alive connections to the upstream, listeners and files. */
const allowedDescriptors = 120

type Ports = Record<'main' | 'tcp' | 'extra' | 'admin' | 'stats' | 'readiness', number>

async function main(): Promise<void> {
  const upstream = await startUpstream()
  const echo = createTcpServer((socket) => socket.on('error', () => {}).pipe(socket))
  const echoPort = await listening(echo)
  const ports = {
    main: await freePort(),
    tcp: await freePort(),
    extra: await freePort(),
    admin: await freePort(),
    stats: await freePort(),
    readiness: await freePort(),
  }
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-soak-'))
  mkdirSync(join(folder, 'config'))
  const file = join(folder, 'config', 'config.yaml')
  const write = (text: string) => {
    writeFileSync(`${file}.next`, text)
    renameSync(`${file}.next`, file)
  }
  const fixed = { ports, upstreamPort: upstream.port, echoPort }
  write(randomConfig(fixed))
  const log = join(folder, 'access.log')
  const entry =
    process.env['TOLLGATE_TEST_ENTRY'] ?? fileURLToPath(new URL('../../src/main.ts', import.meta.url))
  const child = track(
    spawn(process.execPath, [entry, '-f', file], { stdio: ['ignore', openSync(log, 'a'), 'inherit'] }),
  )
  await waitFor('the gateway is ready', async () => {
    if (child.exitCode !== null) throw new Error(`the gateway ended with ${child.exitCode}`)
    return (await statusOf(`http://127.0.0.1:${ports.readiness}/healthz/ready`)) === 200
  })
  const descriptors = () => readdirSync(`/proc/${child.pid}/fd`).length

  const traffic = startTraffic(ports)
  const sizes: number[] = []
  const ends = Date.now() + durationMs
  let rounds = 0
  while (Date.now() < ends && traffic.failures.length === 0) {
    rounds += 1
    const before = await configStatus(ports.admin)
    const broken = rounds % 5 === 0
    write(broken ? 'routes: [{name: 7, hostnames: "*"}]' : randomConfig(fixed, rounds))
    await waitFor(`change ${rounds} is noticed`, async () => {
      const status = await configStatus(ports.admin)
      return broken ? !status.synchronized : status.synchronized && status.revision > before.revision
    })
    await delay(Math.random() * 300)
    sizes.push(residentMebibytes(child))
    truncateSync(log)
  }
  const counts = await traffic.stop()
  await delay(1500)
  const open = descriptors()
  await stop(child)
  upstream.server.closeAllConnections()
  upstream.server.close()
  echo.close()
  rmSync(folder, { recursive: true, force: true })

  const growth = (sizes.at(-1) ?? 0) / (sizes[Math.floor(sizes.length / 4)] ?? 1)
  const say = (line: string) => process.stdout.write(`${line}\n`)
  say(
    `${rounds} changes; served meanwhile: ${Object.entries(counts)
      .map((pair) => pair.join(' '))
      .join(', ')}`,
  )
  say(`open descriptors afterwards: ${open}, allowed ${allowedDescriptors}`)
  const step = Math.ceil(sizes.length / 20)
  say(
    `MiB: ${sizes
      .filter((_, index) => index % step === 0)
      .map(Math.round)
      .join(' ')}`,
  )
  say(`growth after the first quarter: ${growth.toFixed(2)}, allowed ${allowedGrowth}`)
  if (traffic.failures.length > 0)
    throw new Error(`requests failed:\n${traffic.failures.slice(0, 10).join('\n')}`)
  for (const [kind, count] of Object.entries(counts))
    if (count === 0) throw new Error(`no ${kind} was served`)
  if (open > allowedDescriptors) throw new Error('connections stay behind')
  if (growth > allowedGrowth) throw new Error('memory grows')
}

type Fixed = { ports: Ports; upstreamPort: number; echoPort: number }

/** The steady route and TCP route as ever, and random other things around them. */
function randomConfig({ ports, upstreamPort, echoPort }: Fixed, round = 0): string {
  const host = `127.0.0.1:${upstreamPort}`
  const maybe = <T>(value: T): T[] => (Math.random() < 0.5 ? [value] : [])
  const number = (below: number) => Math.floor(Math.random() * below)
  const others = Array.from({ length: number(200) }, (_, index) => ({
    name: `other-${index}`,
    hostnames: [`h${number(50)}.test`],
    matches: [{ path: { pathPrefix: `/r/${index}` } }],
    policies: {
      localRateLimit: [{ requests: 1 + number(100), unit: 'Minutes' }],
      ...Object.fromEntries(maybe(['cors', { allowOrigins: [`https://p${number(9)}.test`] }])),
      ...Object.fromEntries(maybe(['authorization', { rules: [`request.path != "/${number(9)}"`] }])),
    },
    backends: [{ backend: `/b${number(3)}` }, { host, weight: number(5) }],
  }))
  const steady = {
    name: 'steady',
    matches: [{ path: { pathPrefix: '/steady' } }],
    policies: { responseHeaderModifier: { set: { 'x-route': 'steady' } }, retry: { attempts: 1 } },
    backends: [{ host }],
  }
  return JSON.stringify({
    config: {
      bindAddress: '127.0.0.1',
      adminAddr: `127.0.0.1:${ports.admin}`,
      statsAddr: `127.0.0.1:${ports.stats}`,
      readinessAddr: `127.0.0.1:${ports.readiness}`,
    },
    gateways: {
      default: {
        port: ports.main,
        ...Object.fromEntries(maybe(['cors', { allowOrigins: [`https://g${number(9)}.test`] }])),
      },
      tcp: { port: ports.tcp, protocol: 'TCP' },
      ...Object.fromEntries(maybe(['extra', { port: ports.extra }])),
    },
    routes: Math.random() < 0.5 ? [steady, ...others] : [...others, steady],
    tcpRoutes: [{ name: 'echo', gateways: 'tcp', backends: [{ host: `127.0.0.1:${echoPort}` }] }],
    backends: [0, 1, 2].map((index) => ({
      name: `b${index}`,
      host,
      policies: { http: { requestTimeout: `${1 + number(9)}s` }, health: { eviction: { duration: '1s' } } },
    })),
    llm: {
      models: [
        { name: `echo-${round}`, provider: 'echo' },
        { name: 'echo', provider: 'echo' },
      ],
    },
  })
}

async function startUpstream() {
  const server = createServer((incoming, response) => {
    if (incoming.url === '/steady/large') {
      response.end(Buffer.alloc(300_000, 'large '))
      return
    }
    incoming.pipe(response.writeHead(200, { 'content-type': 'text/plain' }))
  })
  const sockets = new WebSocketServer({ noServer: true })
  server.on('upgrade', (incoming, socket, head) => {
    sockets.handleUpgrade(incoming, socket, head, (client) => {
      client.on('message', (data, isBinary) => client.send(data, { binary: isBinary }))
    })
  })
  return { server, port: await listening(server) }
}

async function listening(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  return typeof address === 'object' && address ? address.port : 0
}

/** One loop for each kind of traffic, until stopped or failed. */
function startTraffic({ main, tcp }: Ports) {
  const failures: string[] = []
  const counts: Record<string, number> = {}
  let going = true
  const kept = new Agent({ keepAlive: true, maxSockets: 4 })

  async function loop(kind: string, once: () => Promise<unknown>): Promise<void> {
    counts[kind] = 0
    while (going) {
      try {
        await deadline(once())
        counts[kind] = (counts[kind] ?? 0) + 1
      } catch (error) {
        failures.push(`${kind}: ${error}`)
        going = false
      }
    }
  }

  const body = 'content '.repeat(500)
  const loops = [
    loop('kept requests', () => ask(main, { agent: kept, body })),
    loop('kept requests beside them', () => ask(main, { agent: kept, body: '' })),
    loop('new connections', () => ask(main, { agent: false, body })),
    loop('large answers', () => ask(main, { agent: kept, path: '/steady/large', length: 300_000 })),
    loop('HTTP/2 sessions', () => manyStreams(main, body)),
    loop('WebSockets', () => webSocket(main)),
    loop('TCP connections', () => tcpEcho(tcp)),
    loop('models', () => model(main)),
  ]
  return {
    failures,
    async stop() {
      going = false
      await Promise.all(loops)
      kept.destroy()
      return counts
    },
  }
}

function deadline<T>(work: Promise<T>): Promise<T> {
  const late = delay(10_000, undefined, { ref: false }).then(() => {
    throw new Error('no answer within 10 s')
  })
  return Promise.race([work, late])
}

type Ask = { agent: Agent | false; path?: string; body?: string; length?: number }

async function ask(
  port: number,
  { agent, path = '/steady', body = '', length = body.length }: Ask,
): Promise<void> {
  const method = body === '' ? 'GET' : 'POST'
  const outgoing = request({ host: '127.0.0.1', port, path, method, agent })
  outgoing.end(body)
  const [response] = await once(outgoing, 'response')
  let size = 0
  for await (const chunk of response) size += chunk.length
  if (response.statusCode !== 200 || size !== length)
    throw new Error(`status ${response.statusCode}, ${size} bytes`)
}

async function manyStreams(port: number, body: string): Promise<void> {
  const session = connectHttp2(`http://127.0.0.1:${port}`)
  try {
    await Promise.all(
      Array.from({ length: 20 }, async () => {
        const stream = session.request({ ':path': '/steady', ':method': 'POST' })
        stream.end(body)
        let size = 0
        for await (const chunk of stream) size += chunk.length
        if (size !== body.length) throw new Error(`${size} bytes`)
      }),
    )
  } finally {
    session.close()
  }
}

async function webSocket(port: number): Promise<void> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/steady/chat`)
  await once(socket, 'open')
  for (const text of ['one', 'x'.repeat(100_000)]) {
    const answer = once(socket, 'message')
    socket.send(text)
    if (String((await answer)[0]) !== text) throw new Error('another message came back')
  }
  const closed = once(socket, 'close')
  socket.close(1000)
  if ((await closed)[0] !== 1000) throw new Error('closed with another code')
}

async function tcpEcho(port: number): Promise<void> {
  const socket = connect(port, '127.0.0.1')
  const text = 'through '.repeat(10_000)
  socket.end(text)
  let size = 0
  for await (const chunk of socket) size += chunk.length
  if (size !== text.length) throw new Error(`${size} bytes`)
}

async function model(port: number): Promise<void> {
  const response = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"model":"echo","messages":[{"role":"user","content":"hello"}]}',
  })
  const text = await response.text()
  if (response.status !== 200 || !text.includes('hello'))
    throw new Error(`status ${response.status}: ${text}`)
}

async function configStatus(port: number): Promise<{ synchronized: boolean; revision: number }> {
  const response = await fetch(`http://127.0.0.1:${port}/api/config/status`)
  const status: { synchronized: boolean; revision: number } = JSON.parse(await response.text())
  return status
}

function statusOf(url: string): Promise<number> {
  return fetch(url).then(
    (response) => response.status,
    () => 0,
  )
}

async function waitFor(what: string, holds: () => Promise<boolean>): Promise<void> {
  const late = Date.now() + appliedWithinMs
  while (!(await holds())) {
    if (Date.now() > late) throw new Error(`not within ${appliedWithinMs} ms: ${what}`)
    await delay(50)
  }
}

try {
  await main()
} finally {
  await stopAll()
}
