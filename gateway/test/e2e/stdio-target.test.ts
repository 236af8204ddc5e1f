import { spawn, spawnSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { compileStdio, type StdioConfig } from '../../src/backends/mcp/targets/stdio.ts'
import type { Target } from '../../src/backends/mcp/targets/target.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { isJsonObject } from '../../src/lib/json/json.ts'
import { type ChildProcesses, createChildProcesses } from '../../src/process/child-process.ts'
import { createProcessGuardian } from '../../src/process/guardian.ts'
import { fixturePlaces } from '../fixtures/mcp.ts'
import { endAfter } from '../support/cleanup.ts'
import { isRunning } from '../support/is-running.ts'
import { call, callContext, collect, messageOf, reasonOf, resultOf } from '../support/target-session.ts'
import { until, within } from '../support/wait.ts'

// The stdio target on real processes.

const program = fileURLToPath(new URL('../support/stdio-program.mjs', import.meta.url))

type Line = { fields: object; message: string }
type Started = { target: Target; children: ChildProcesses; log: Line[] }

function start(config: Partial<StdioConfig> = {}, maxChildren = 100): Started {
  const children = createChildProcesses({
    environment: process.env,
    guardian: createProcessGuardian(),
    maxChildren,
    closeGraceMs: 200,
    terminateGraceMs: 300,
  })
  endAfter('test', async () => {
    await children.close()
    expect(children.count()).toBe(0)
  })
  const log: Line[] = []
  const write = (fields: object, message: string) => {
    log.push({ fields, message })
  }
  const target = compileStdio(
    'files',
    { cmd: process.execPath, args: [program], ...config },
    {
      clock: systemClock,
      spawn: children.spawn,
      programs: fixturePlaces(),
      log: { debug: write, info: write, warn: write, error: write, audit: write },
    },
  )
  return { target, children, log }
}

/** Command lines of the processes that this one has started, without the one that finds them. */
function childCommands(): string[] {
  const { stdout } = spawnSync('ps', ['-o', 'args=', '--ppid', String(process.pid)], { encoding: 'utf8' })
  return stdout.split('\n')
}

describe('a stdio target', () => {
  it('starts a program of its own for each session, with the first request', async () => {
    const { target, children } = start()
    const [one, other] = [target.open(), target.open()]
    expect(children.count()).toBe(0)
    const pids = await Promise.all([one, other].map((session) => resultOf(call(session, 'pid'))))
    expect(pids[0]?.['pid']).not.toBe(pids[1]?.['pid'])
    expect(children.count()).toBe(2)
  })

  it('passes the configured arguments and, if configured, no further environment', async () => {
    const { target } = start({ args: [program, 'a b', '$HOME'], env: { ONLY: 'this' }, clearEnv: true })
    const result = await resultOf(call(target.open(), 'environment'))
    expect(result['arguments']).toEqual(['a b', '$HOME'])
    expect(result['names']).toContain('ONLY')
    expect(result['names']).not.toContain('HOME')
  })

  it('ends the program when the session is closed', async () => {
    const { target, children } = start()
    const session = target.open()
    const { pid } = await resultOf(call(session, 'pid'))
    await within('the session closes', session.close())
    expect(isRunning(pid)).toBe(false)
    expect(children.count()).toBe(0)
  })

  it('ends a program that ignores SIGTERM, with its children, after a delay', async () => {
    const { target } = start({ args: [program, '--stubborn'] })
    const session = target.open()
    const { pid } = await resultOf(call(session, 'pid'))
    const { pid: grandchild } = await resultOf(call(session, 'grandchild'))
    expect(isRunning(grandchild)).toBe(true)
    await within('the session closes', session.close())
    expect([isRunning(pid), isRunning(grandchild)]).toEqual([false, false])
  })

  it('ends the remaining processes of a program that has exited', async () => {
    const { target, children } = start()
    const session = target.open()
    const { pid: grandchild } = await resultOf(call(session, 'grandchild'))
    await call(session, 'crash').ended
    await until('the group is gone', () => children.count() === 0)
    expect(isRunning(grandchild)).toBe(false)
  })

  it('fails pending and later requests with the reason when the program ends', async () => {
    const { target, log } = start()
    const session = target.open()
    const deaths: string[] = []
    session.onTerminated((reason) => deaths.push(reason))
    await resultOf(call(session, 'pid'))
    const hanging = call(session, 'hang')
    const crashing = call(session, 'crash')
    expect(reasonOf(await hanging.ended)).toBe('upstream_reset: target "files" ended: exit code 3')
    expect(reasonOf(await crashing.ended)).toBe('upstream_reset: target "files" ended: exit code 3')
    expect(deaths).toEqual(['target "files" ended: exit code 3'])
    expect(reasonOf(await call(session, 'pid').ended)).toBe('ended: exit code 3')
    expect(log).toContainEqual({
      fields: { target: 'files', line: 'about to crash' },
      message: 'MCP target error output received',
    })
  })

  it('reports that a command does not exist', async () => {
    const { target } = start({ cmd: 'no-such-command-of-tollgate' })
    expect(reasonOf(await call(target.open(), 'pid').ended)).toBe(
      'upstream_connect: target "files" is not available: command not found',
    )
  })

  it('refuses more processes than allowed', async () => {
    const { target } = start({}, 1)
    await resultOf(call(target.open(), 'pid'))
    expect(reasonOf(await call(target.open(), 'pid').ended)).toContain('the limit of 1 processes is reached')
  })

  it('starts nothing more once the gateway stops', async () => {
    const { target, children } = start()
    const session = target.open()
    await resultOf(call(session, 'pid'))
    await children.close()
    expect(reasonOf(await call(target.open(), 'pid').ended)).toContain('the gateway is stopping')
    expect(reasonOf(await call(session, 'pid').ended)).toContain('ended')
  })

  it('kills everything at once in the last moment', async () => {
    const { target, children } = start({ args: [program, '--stubborn'] })
    const { pid } = await resultOf(call(target.open(), 'pid'))
    children.killAll()
    await until('the program is gone', () => !isRunning(pid))
  })

  it('ignores and logs output that is no message, unless it may be content', async () => {
    const { target, log } = start()
    await resultOf(call(target.open(), 'garbage'))
    expect(log.map(({ fields }) => fields)).toEqual([
      { target: 'files', line: 'Server is listening', problem: 'not valid JSON' },
      { target: 'files', problem: 'not valid JSON' },
      { target: 'files', problem: 'not a JSON object' },
    ])
  })

  it.each(['flood', 'chatter'])('ends a session whose program sends a %s', async (method) => {
    const { target, children, log } = start()
    const failure = await within('the session ends', call(target.open(), method).ended)
    expect(reasonOf(failure)).toMatch(/(a line exceeds|1000 consecutive lines are not)/)
    await until('the program is gone', () => children.count() === 0)
    expect(log.length).toBeLessThan(200)
  })

  it('ends a session whose program closes its input', async () => {
    const { target } = start()
    const session = target.open()
    const first = call(session, 'deaf')
    await within(
      'a message fails',
      until('the pipe breaks', async () => {
        const failure = await session.deliver(
          messageOf({ jsonrpc: '2.0', method: 'notifications/x' }),
          callContext(),
        )
        return failure?.kind === 'ended'
      }),
    )
    expect(reasonOf(await first.ended)).toContain('input closed by the process')
  })

  it('refuses messages once too much waits for a program that does not read', async () => {
    const { target } = start()
    const session = target.open()
    await resultOf(call(session, 'pid'))
    call(session, 'busy')
    const big = 'x'.repeat(5 * 1024 * 1024)
    call(session, 'hang', { big })
    call(session, 'hang', { big })
    expect(reasonOf(await call(session, 'hang').ended)).toBe(
      'upstream_timeout: target "files" does not read its input',
    )
  })

  it('applies back pressure to the program while a reader is full, without loss', async () => {
    const { target } = start()
    const session = target.open()
    await resultOf(call(session, 'pid'))
    const sink = collect(() => false)
    const request = messageOf({ jsonrpc: '2.0', id: 'm', method: 'many', params: { count: 20_000 } })
    const flow = session.request(request, callContext(), sink)
    await until('the first message comes', () => sink.messages.length === 1)
    for (let count = 1; count <= 20_000; count += 1) {
      await until(`message ${count} comes`, () => sink.messages.length === count)
      flow.resume()
    }
    expect(await sink.ended).toBe(undefined)
    const indexes = sink.messages.map(({ params }) => (isJsonObject(params) ? params['index'] : 'result'))
    expect(indexes).toEqual([...Array.from({ length: 20_000 }, (_, index) => index), 'result'])
  })

  it('limits the error output in the log', async () => {
    const { target, log } = start()
    await resultOf(call(target.open(), 'errors', { count: 10_000 }))
    expect(log.length).toBeGreaterThan(10)
    expect(log.length).toBeLessThan(300)
  })

  it('leaves no process of 1,000 sessions, whether they are closed or abandoned', async () => {
    const { target, children } = start({ cmd: 'cat', args: [] }, 1000)
    const sessions = Array.from({ length: 1000 }, () => target.open())
    for (const session of sessions) call(session, 'initialize')
    expect(children.count()).toBe(1000)
    // Starting 2,000 processes takes a busy machine a while; only their end is asserted.
    const half = Promise.all(sessions.slice(500).map((session) => session.close()))
    await within('half of them close', half, 60_000)
    expect(children.count()).toBe(500)
    await within('all end', children.close(), 60_000)
    expect(children.count()).toBe(0)
    // The guardian, which would have killed them after this process, has ended too.
    await until('no child is left', () => !childCommands().some((command) => /^cat|sh -c/.test(command)))
  }, 180_000)

  it.each([
    ['ends with its input', []],
    ['ignores everything', ['--stubborn']],
  ])('leaves no program behind that %s when the gateway itself is killed', async (_, args) => {
    const module = new URL('../../src/process/child-process.ts', import.meta.url).href
    const guardian = new URL('../../src/process/guardian.ts', import.meta.url).href
    const script = `
      const { createChildProcesses } = await import(${JSON.stringify(module)})
      const { createProcessGuardian } = await import(${JSON.stringify(guardian)})
      const options = { environment: process.env, guardian: createProcessGuardian(), maxChildren: 1, closeGraceMs: 1000, terminateGraceMs: 1000 }
      const stdout = (chunk) => process.stdout.write(chunk)
      const command = { command: process.execPath, args: ${JSON.stringify([program, ...args])}, env: {}, clearEnv: false }
      const child = createChildProcesses(options).spawn(command, { stdout, stderr() {}, ended() {} })
      child.write('{"id":1,"method":"grandchild"}\\n{"id":2,"method":"pid"}\\n')`
    const parent = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    endAfter('test', () => {
      parent.kill('SIGKILL')
    })
    let output = ''
    parent.stdout.on('data', (chunk) => {
      output += chunk
    })
    const pids = await until('both processes answer', () => {
      const found = [...output.matchAll(/"pid":(\d+)/g)].map((match) => Number(match[1]))
      return found.length === 2 && found
    })
    expect(pids.map(isRunning)).toEqual([true, true])
    parent.kill('SIGKILL')
    await until('they end', () => !pids.some(isRunning))
  })

  it('speaks with the official server', async () => {
    const everything = createRequire(import.meta.url).resolve(
      '@modelcontextprotocol/server-everything/dist/index.js',
    )
    const { target } = start({ args: [everything, 'stdio'] })
    const session = target.open()
    const initialized = await resultOf(
      call(session, 'initialize', {
        protocolVersion: '2025-11-25',
        capabilities: {},
        clientInfo: { name: 'test', version: '1' },
      }),
    )
    expect(initialized['serverInfo']).toMatchObject({ name: expect.stringContaining('everything') })
    await session.deliver(messageOf({ jsonrpc: '2.0', method: 'notifications/initialized' }), callContext())
    const result = await resultOf(
      call(session, 'tools/call', { name: 'echo', arguments: { message: 'hello' } }),
    )
    expect(result['content']).toEqual([{ type: 'text', text: 'Echo: hello' }])
    await session.close()
  })
})
