import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Config } from '../../../config/schema.ts'
import { runToCompletion } from '../../../lib/scheduling/yielding.ts'
import { createAssembly, type ReceivedConfig } from '../client/received.ts'
import { deltaMessage, fullMessage, readLine } from './messages.ts'
import { type ConfigParts, createDivider } from './parts.ts'

/** A configuration of the sections that are divided, and some that are not; names may repeat or be absent. */
const configs: fc.Arbitrary<Config> = fc
  .record(
    {
      gateways: fc.dictionary(fc.constantFrom('80', '443', '__proto__', 'a/b'), entry()),
      routes: fc.array(entry(), { maxLength: 12 }),
      tcpRoutes: fc.array(entry(), { maxLength: 3 }),
      backends: fc.array(entry(), { maxLength: 6 }),
      config: fc.record({ bindAddress: fc.constantFrom('::', '127.0.0.1') }),
    },
    { requiredKeys: [] },
  )
  .map((value) => asConfig(value))

function entry() {
  return fc.record(
    {
      name: fc.constantFrom('a', 'b', 'c', 'a#1', 'Service/x/y:80', 'd', 'e'),
      text: fc.string({ maxLength: 5 }),
      list: fc.array(fc.record({ host: fc.constantFrom('one', 'two', 'line\nbreak') }), { maxLength: 3 }),
    },
    { requiredKeys: [] },
  )
}

/** The stream does not interpret values. */
function asConfig(value: unknown): Config {
  return value as Config
}

function receive(start: ReceivedConfig | undefined, message: Iterable<string>): ReceivedConfig | string {
  const assemble = createAssembly(start)
  for (const line of [...message].join('').trimEnd().split('\n')) {
    const result = assemble(readLine(line), line)
    if (result.kind === 'received') return result.received
    if (result.kind === 'broken') return result.reason
  }
  return 'incomplete'
}

function received(start: ReceivedConfig | undefined, message: Iterable<string>): ReceivedConfig {
  const result = receive(start, message)
  if (typeof result === 'string') throw new Error(result)
  return result
}

function plain(config: Config): unknown {
  return JSON.parse(JSON.stringify(config))
}

describe('parts of a configuration', () => {
  it('lead from any version to any other, with the nodes that are equal', () => {
    fc.assert(
      fc.property(fc.array(configs, { minLength: 2, maxLength: 6 }), fc.nat(), (steps, resumed) => {
        const divide = createDivider()
        const all: ConfigParts[] = []
        for (const config of steps) all.push(runToCompletion(divide(config, all.at(-1))))
        const last = all.at(-1)
        const from = all[resumed % all.length]
        if (last === undefined || from === undefined) return
        const start = received(undefined, fullMessage(from))
        expect(plain(start.config)).toEqual(plain(steps[all.indexOf(from)] ?? {}))
        const end = received(start, deltaMessage(from, last))
        expect(plain(end.config)).toEqual(plain(steps.at(-1) ?? {}))
        expect(end.version).toBe(last.version)
        expect(end.hashes).toEqual(received(undefined, fullMessage(last)).hashes)
        for (const [index, key] of end.keys.entries()) {
          const before = start.keys.indexOf(key)
          if (before >= 0 && start.hashes[before] === end.hashes[index]) {
            expect(end.values[index]).toBe(start.values[before])
          }
        }
      }),
      { numRuns: 300 },
    )
  })

  it('have equal versions in two processes for equal content', () => {
    fc.assert(
      fc.property(configs, configs, (one, other) => {
        const version = (config: Config) => runToCompletion(createDivider()(config)).version
        expect(version(one)).toBe(version(structuredClone(one)))
        if (JSON.stringify(one) !== JSON.stringify(other)) expect(version(one)).not.toBe(version(other))
      }),
    )
  })

  it('are refused if any line is changed, lost or repeated', () => {
    const config = asConfig({ routes: [{ name: 'a' }, { name: 'b' }], gateways: { x: { port: 1 } } })
    const lines = [...fullMessage(runToCompletion(createDivider()(config)))]
    for (const [index, line] of lines.entries()) {
      const without = lines.filter((_, other) => other !== index)
      expect(receive(undefined, without), `without ${line}`).toBeTypeOf('string')
      const changed = line.replace(/"b"|"a"|1/, '"c"')
      if (changed !== line) expect(receive(undefined, lines.with(index, changed))).toBeTypeOf('string')
      // A line after the end belongs to the next message.
      if (index === lines.length - 1) continue
      expect(receive(undefined, lines.toSpliced(index, 0, line))).toBeTypeOf('string')
    }
  })

  it('encode one new part among many in a few bytes', () => {
    const divide = createDivider()
    const routes = Array.from({ length: 1_000 }, (_, index) => ({ name: `r${index}` }))
    const before = runToCompletion(divide(asConfig({ routes })))
    const after = runToCompletion(
      divide(asConfig({ routes: routes.toSpliced(500, 0, { name: 'new' }) }), before),
    )
    expect([...deltaMessage(before, after)].join('').length).toBeLessThan(250)
  })

  it('are the same node in the Config if only others change', () => {
    const divide = createDivider()
    const routes = [{ name: 'r' }]
    const one = asConfig({ routes, backends: [{ name: 'a', endpoints: [] }, { name: 'b' }] })
    const two = asConfig({ routes, backends: [{ name: 'a', endpoints: [{ host: 'x' }] }, { name: 'b' }] })
    const before = runToCompletion(divide(one))
    const start = received(undefined, fullMessage(before))
    const end = received(start, deltaMessage(before, runToCompletion(divide(two, before))))
    expect(end.config.routes).toBe(start.config.routes)
    expect(end.config.backends?.[1]).toBe(start.config.backends?.[1])
    expect(end.config).toEqual(two)
  })
})
