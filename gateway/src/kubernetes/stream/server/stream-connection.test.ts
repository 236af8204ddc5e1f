import { Duplex } from 'node:stream'
import { setTimeout as delay, setImmediate as turn } from 'node:timers/promises'
import { zstdDecompressSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { until } from '../../../../test/support/wait.ts'
import type { Config } from '../../../config/schema.ts'
import { runToCompletion } from '../../../lib/scheduling/yielding.ts'
import { createDivider } from '../parts/parts.ts'
import { createChannel } from './channel.ts'
import { createStreamConnection, type StreamConnectionOptions } from './stream-connection.ts'

/** A stream whose reader takes nothing until `read` is called. */
function slowStream() {
  const pending: (() => void)[] = []
  const chunks: Buffer[] = []
  const stream = new Duplex({
    read() {},
    write(chunk, _encoding, done) {
      chunks.push(chunk)
      pending.push(done)
    },
  })
  return {
    stream,
    length: () => stream.writableLength,
    /** Empty within a message. */
    text() {
      try {
        return zstdDecompressSync(Buffer.concat(chunks)).toString()
      } catch {
        return ''
      }
    },
    async read() {
      while (!stream.destroyed) {
        pending.shift()?.()
        await turn()
      }
    },
  }
}

function open(slow: ReturnType<typeof slowStream>, times: Partial<StreamConnectionOptions> = {}) {
  const channel = createChannel({ yieldPoint: () => undefined, onProxyChange() {} })
  const divide = createDivider()
  const stream = createStreamConnection({
    // The parts of an HTTP/2 stream in use are those of any stream.
    response: slow.stream as unknown as StreamConnectionOptions['response'],
    channel,
    resume: undefined,
    heartbeatMs: 60_000,
    stallMs: 60_000,
    ...times,
  })
  channel.connections.add({ id: 'id', name: 'edge-1', connectedAt: 0, stream })
  const publish = (config: Config) => channel.publish(runToCompletion(divide(config, channel.parts)))
  return { channel, publish }
}

/** Some 500 KB that do not compress well. */
function bulky(round: number): Config {
  return {
    routes: Array.from({ length: 500 }, (_, index) => ({
      name: `r${index}`,
      hostnames: [noise(round * 1_000 + index)],
    })),
  }
}

function noise(seed: number): string {
  let state = seed * 7_919 + 1
  let text = ''
  while (text.length < 1_000) {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    text += state.toString(36)
  }
  return text
}

describe('the stream to a proxy that does not read', () => {
  it('has one piece of a message in memory, whatever is published', async () => {
    const slow = slowStream()
    const { publish } = open(slow)
    publish(bulky(0))
    await until('the first piece is written', () => slow.length() > 0)
    for (let round = 1; round < 20; round++) publish(bulky(round))
    await turn()
    expect(slow.length()).toBeLessThanOrEqual(64 * 1024)
    void slow.read()
    await until(
      'the last version is sent',
      () => slow.stream.writableLength === 0 && slow.text().includes(noise(19_000)),
    )
    expect(slow.text().match(/"kind":/g)).toHaveLength(2)
    slow.stream.destroy()
  })

  it('ends after the stall time', async () => {
    const slow = slowStream()
    const { publish } = open(slow, { stallMs: 50 })
    publish(bulky(0))
    await until('the stream is destroyed', () => slow.stream.destroyed)
  })

  it('has one heartbeat in memory', async () => {
    const slow = slowStream()
    open(slow, { heartbeatMs: 2 })
    await until('a heartbeat is written', () => slow.length() > 0)
    const length = slow.length()
    await delay(100)
    expect(slow.length()).toBe(length)
    slow.stream.destroy()
  })

  it('ends a closed stream whose reader stopped', async () => {
    const slow = slowStream()
    const { channel, publish } = open(slow, { stallMs: 20 })
    channel.close('the token has expired')
    publish(bulky(1))
    expect(slow.stream.destroyed).toBe(false)
    await until('the end of the stream', () => slow.stream.destroyed)
  })
})
