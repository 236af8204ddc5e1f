import { describe, expect, it } from 'vitest'
import { fixturePlaces } from '../../../../test/fixtures/mcp.ts'
import { fixtureContext } from '../../../../test/fixtures/pipeline.ts'
import { createCancellation } from '../../../lib/cancellation.ts'
import type { Child, ChildCommand, ChildListener } from '../../../process/child-process.ts'
import { check } from '../../../schema/check.ts'
import type { TargetFailure } from '../message/message.ts'
import { checkStdio, compileStdio, type StdioConfig, stdioSchema } from './stdio.ts'
import type { CallContext } from './target.ts'

const context: CallContext = { headers: {}, cancellation: createCancellation() }

/** A target whose programs are the test's own. */
function start(config: StdioConfig = { cmd: 'server' }, programs = fixturePlaces()) {
  const { clock } = fixtureContext()
  const lines: object[] = []
  const commands: ChildCommand[] = []
  const written: string[] = []
  const state = { waiting: 0, ended: 0 }
  let program: ChildListener | undefined
  let refuse: ((ok: boolean) => void) | undefined
  const log = (fields: object, message: string) => {
    lines.push({ ...fields, message })
  }
  const target = compileStdio('files', config, {
    clock,
    programs,
    log: { debug() {}, info: log, warn: log, error: log, audit: log },
    spawn(command, listener): Child {
      commands.push(command)
      program = listener
      return {
        write(text, taken) {
          written.push(text)
          refuse = taken
        },
        waiting: () => state.waiting,
        pause() {},
        resume() {},
        end() {
          state.ended += 1
          return Promise.resolve()
        },
      }
    },
  })
  const session = target.open()
  const failures: TargetFailure[] = []
  return {
    session,
    lines,
    commands,
    written,
    state,
    failures,
    taken: (ok: boolean) => refuse?.(ok),
    stdout: (text: string) => program?.stdout(Buffer.from(text)),
    stderr: (text: string) => program?.stderr(Buffer.from(text)),
    ended: (reason: string) => program?.ended(reason),
    request(text: string) {
      const sink = {
        message: () => true,
        mark() {},
        end() {},
        fail: (failure: TargetFailure) => failures.push(failure),
      }
      return session.request({ text, value: JSON.parse(text) }, context, sink)
    },
  }
}

const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}'

describe('a stdio target', () => {
  it('runs the configured command', () => {
    const { request, commands } = start({ cmd: 'npx', args: ['-y', 'x'], env: { A: 'b' }, clearEnv: true })
    request(ping)
    expect(commands).toEqual([{ command: 'npx', args: ['-y', 'x'], env: { A: 'b' }, clearEnv: true }])
  })

  it('writes every message on a line of its own, however it was laid out', () => {
    const { request, written } = start()
    request('{\n  "jsonrpc": "2.0",\r\n  "id": 1,\n  "method": "a\\nb"\n}')
    expect(written).toEqual(['{   "jsonrpc": "2.0",   "id": 1,   "method": "a\\nb" }\n'])
  })

  it('ends a program that writes an endless line', () => {
    const { request, stdout, state, failures } = start()
    request(ping)
    for (let megabytes = 0; megabytes < 33; megabytes += 1) stdout('x'.repeat(1024 * 1024))
    expect(failures).toMatchObject([
      { kind: 'error', error: { message: expect.stringContaining('a line exceeds') } },
    ])
    expect(state.ended).toBe(1)
  })

  it('ends a program that speaks something else, but not one that sometimes chatters', () => {
    const { request, stdout, state } = start()
    request(ping)
    for (let round = 0; round < 3; round += 1) {
      stdout('chatter\n'.repeat(900))
      stdout('{"jsonrpc":"2.0","method":"notifications/x"}\n')
    }
    expect(state.ended).toBe(0)
    stdout('chatter\n'.repeat(1001))
    expect(state.ended).toBe(1)
  })

  it('logs error output line by line, truncated and rate-limited', () => {
    const { request, stderr, lines } = start()
    request(ping)
    stderr('one\ntw')
    stderr(`o\n${'x'.repeat(5000)}\n`)
    const message = 'MCP target error output received'
    expect(lines).toEqual([
      { target: 'files', line: 'one', message },
      { target: 'files', line: 'two', message },
      { target: 'files', line: `${'x'.repeat(2000)}…`, message },
    ])
    stderr('y\n'.repeat(100_000))
    expect(lines).toHaveLength(100)
  })

  it('reports an unsent message after the exit reason', async () => {
    const { session, taken, ended } = start()
    const delivered = session.deliver({ text: '{}', value: {} }, context)
    taken(false)
    ended('exit code 7')
    expect(await delivered).toEqual({ kind: 'ended', reason: 'exit code 7' })
  })

  it('refuses a message while too much waits for the program', async () => {
    const { session, state } = start()
    state.waiting = 9 * 1024 * 1024
    expect(await session.deliver({ text: '{}', value: {} }, context)).toMatchObject({
      kind: 'error',
      error: { message: 'target "files" does not read its input' },
    })
  })

  it('is not started above its bound, and has its place until it is gone', async () => {
    const programs = fixturePlaces({ maxMcpSessions: 1 })
    const first = start(undefined, programs)
    const second = start(undefined, programs)
    first.request(ping)
    second.request(ping)
    await Promise.resolve()
    expect(second.failures).toMatchObject([{ kind: 'refused', status: 503 }])
    expect([first.commands.length, second.commands.length]).toEqual([1, 0])
    await first.session.close()
    await first.session.close()
    const third = start(undefined, programs)
    third.request(ping)
    expect(third.commands).toHaveLength(1)
  })

  it('cannot be continued by another process', () => {
    const { session } = start()
    expect(session.state()).toBe(undefined)
  })
})

describe('the configuration of a stdio target', () => {
  it('accepts the example of the specification', () => {
    const value = { cmd: 'npx', args: ['-y', '@modelcontextprotocol/server-everything'] }
    expect(check(stdioSchema, value).kind).toBe('valid')
  })

  it('reports invalid commands and variables', () => {
    const mistakes: string[] = []
    const config = { cmd: 'a\0', args: ['ok', '\0'], env: { 'A=B': 'x', '': 'y', C: '\0' } }
    checkStdio(config, (path) => mistakes.push(path.join('.')))
    expect(mistakes).toEqual(['cmd', 'args.1', 'env.A=B', 'env.', 'env.C'])
  })
})
