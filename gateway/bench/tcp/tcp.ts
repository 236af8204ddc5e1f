import { connect } from 'node:net'
import type { ProgramOptions } from '../changes/reload.ts'
import { median } from '../measure/measure.ts'
import { cpuMicroseconds, type Subject, startScript, stop } from '../subjects/processes.ts'
import { startTollgate } from '../subjects/tollgate.ts'

/** Medians over all rounds at one subject. */
export type TcpFigures = { mebibytesPerSecond: number; cpuSecondsPerGibibyte: number; connectMicros: number }

export type TcpPace = { rounds: number; mebibytes: number; connections: number }

export type TcpResult = { relay: TcpFigures; tollgate: TcpFigures }

const mebibyte = 1024 * 1024

/** A TCP route beside the least that this runtime needs for the same. */
export async function compareTcp(pace: TcpPace, options: ProgramOptions): Promise<TcpResult> {
  const { placement } = options
  const cpus = placement.gateway
  const upstream = await startScript('tcp/upstream.ts', (port) => [String(port)], {
    cpus: placement.upstream,
  })
  const relay = await startScript('tcp/relay.ts', (port) => [String(port), String(upstream.port)], { cpus })
  const tollgate = await startTollgate({
    ...options,
    cpus,
    upstreamPort: upstream.port,
    sections: (port) => ({
      gateways: { default: { port, protocol: 'TCP' } },
      tcpRoutes: [{ name: 'tcp', backends: [{ host: `127.0.0.1:${upstream.port}` }] }],
    }),
  })
  const [relayFigures, tollgateFigures] = await measureTcp([relay, tollgate], pace)
  await Promise.all([stop(relay.child), stop(upstream.child), tollgate.end()])
  if (!relayFigures || !tollgateFigures) throw new Error('no figures')
  return { relay: relayFigures, tollgate: tollgateFigures }
}

/** Moves bytes both ways through each subject in turn, and opens connections that carry next to nothing. */
async function measureTcp(subjects: readonly Subject[], pace: TcpPace): Promise<TcpFigures[]> {
  const rounds = subjects.map((): TcpFigures[] => [])
  // The first round warms up.
  for (let round = 0; round <= pace.rounds; round++) {
    for (const [index, subject] of subjects.entries()) {
      const figures = await oneRound(subject, pace)
      if (round > 0) rounds[index]?.push(figures)
    }
  }
  return rounds.map((figures) => ({
    mebibytesPerSecond: median(figures.map((one) => one.mebibytesPerSecond)),
    cpuSecondsPerGibibyte: median(figures.map((one) => one.cpuSecondsPerGibibyte)),
    connectMicros: median(figures.map((one) => one.connectMicros)),
  }))
}

async function oneRound(subject: Subject, { mebibytes, connections }: TcpPace): Promise<TcpFigures> {
  const cpuBefore = cpuMicroseconds(subject.child)
  const startedAt = performance.now()
  // Two that send and two that receive, at the same time.
  const share = (mebibytes / 4) * mebibyte
  await Promise.all([share, 0, share, 0].map((sent) => transfer(subject.port, sent, share - sent)))
  const seconds = (performance.now() - startedAt) / 1000
  const cpuBetween = cpuMicroseconds(subject.child)
  for (let done = 0; done < connections; done += 20) {
    await Promise.all(Array.from({ length: 20 }, () => transfer(subject.port, 100, 100)))
  }
  return {
    mebibytesPerSecond: mebibytes / seconds,
    cpuSecondsPerGibibyte: (cpuBetween - cpuBefore) / 1e6 / (mebibytes / 1024),
    connectMicros: (cpuMicroseconds(subject.child) - cpuBetween) / connections,
  }
}

const block = Buffer.alloc(64 * 1024, 'tollgate')

/** Sends and receives so many bytes over one connection; fails unless all of them arrived. */
function transfer(port: number, sent: number, wanted: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, allowHalfOpen: true })
    const head = Buffer.alloc(8)
    head.writeBigUInt64BE(BigInt(wanted))
    let received = 0
    let last: Buffer = Buffer.alloc(0)
    socket.on('error', reject)
    socket.on('data', (chunk: Buffer) => {
      received += chunk.length
      last = chunk.length >= 8 ? chunk : Buffer.concat([last, chunk])
    })
    socket.on('end', () => {
      const arrived = last.length >= 8 ? Number(last.readBigUInt64BE(last.length - 8)) : -1
      if (received === wanted + 8 && arrived === sent) resolve()
      else reject(new Error(`lost bytes: ${arrived} of ${sent} sent, ${received - 8} of ${wanted} received`))
    })
    socket.write(head)
    send(sent)

    function send(left: number): void {
      for (let unsent = left; unsent > 0; ) {
        const piece = block.subarray(0, Math.min(unsent, block.length))
        unsent -= piece.length
        if (!socket.write(piece)) {
          socket.once('drain', () => send(unsent))
          return
        }
      }
      socket.end()
    }
  })
}
