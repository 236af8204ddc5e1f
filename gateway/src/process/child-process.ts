import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { kill } from 'node:process'
import { setTimeout as delay } from 'node:timers/promises'
import type { ProcessGuardian } from './guardian.ts'

/** A program to run, never through a shell. */
export type ChildCommand = {
  /** A path, or a name looked up in `PATH`. */
  command: string
  args: readonly string[]
  /** Environment variables of the process. */
  env: Readonly<Record<string, string>>
  /** Whether the environment contains only `env`, without that of the gateway. */
  clearEnv: boolean
}

/** Events of a child process. Not called before `spawn` has returned. */
export type ChildListener = {
  stdout(chunk: Uint8Array): void
  stderr(chunk: Uint8Array): void
  /**
   * Called once, after the last output, with the reason of the end or failed start, for example `exit code
   * 1`.
   */
  ended(reason: string): void
}

/** A running program in its own process group. */
export type Child = {
  /**
   * Writes to stdin. `taken` receives whether the pipe accepted the text; it is called once, asynchronously.
   * A child that closes its stdin is ended.
   */
  write(text: string, taken?: (ok: boolean) => void): void
  /** Characters buffered outside of the pipe. */
  waiting(): number
  /** Stops reading stdout, so that the child blocks when the pipe is full. */
  pause(): void
  resume(): void
  /**
   * Ends the process group: closes stdin, then SIGTERM, then SIGKILL, each after a grace period. Resolves
   * after the end of the group. Idempotent.
   */
  end(): Promise<void>
}

export type SpawnProcess = (command: ChildCommand, listener: ChildListener) => Child

/** Child processes of the gateway. */
export type ChildProcesses = {
  spawn: SpawnProcess
  /** Number of process groups that have not ended. */
  count(): number
  /** Ends all, as `Child.end`, and starts no more. */
  close(): Promise<void>
  /** Kills all immediately, for the exit of the gateway. */
  killAll(): void
}

export type ChildProcessOptions = {
  /** Inherited environment unless the command has `clearEnv`; its `PATH` locates programs. */
  environment: Readonly<Record<string, string | undefined>>
  /** Kills process groups that outlive the gateway. */
  guardian: ProcessGuardian
  /** Limit of process groups; more are rejected. */
  maxChildren: number
  /** Grace periods after closing stdin, and after SIGTERM. */
  closeGraceMs: number
  terminateGraceMs: number
}

/** Wait for output after the end of a child, through pipes inherited by others. */
const lateOutputMs = 500
const groupPollMs = 50

/** Owner of child processes. Each leads its own process group, so that its descendants end with it. */
export function createChildProcesses(options: ChildProcessOptions): ChildProcesses {
  const groups = new Set<ProcessGroup>()
  const { guardian } = options
  let closing = false
  return {
    spawn(command, listener) {
      if (closing) return failedChild('the gateway is stopping', listener)
      if (groups.size >= options.maxChildren) {
        return failedChild(`the limit of ${options.maxChildren} processes is reached`, listener)
      }
      let child: ChildProcessWithoutNullStreams
      try {
        child = start(command, options.environment)
      } catch (error) {
        return failedChild(startProblem(error), listener)
      }
      const group = createGroup(child, options)
      if (child.pid !== undefined) {
        const { pid } = child
        groups.add(group)
        guardian.watch(pid)
        void group.gone.then(() => {
          groups.delete(group)
          guardian.unwatch(pid)
        })
      }
      return connect(child, group, listener)
    },
    count: () => groups.size,
    async close() {
      closing = true
      await Promise.all([...groups].map((group) => group.end()))
    },
    killAll() {
      closing = true
      for (const group of groups) group.signal('SIGKILL')
    },
  }
}

function start(
  { command, args, env, clearEnv }: ChildCommand,
  environment: ChildProcessOptions['environment'],
): ChildProcessWithoutNullStreams {
  const childEnv = clearEnv ? { ...env } : { ...environment, ...env }
  const program = childEnv['PATH'] === undefined ? findProgram(command, environment['PATH']) : command
  return spawn(program, args, { env: childEnv, detached: true, stdio: ['pipe', 'pipe', 'pipe'] })
}

/** A child without its own `PATH` is located by that of the gateway. */
function findProgram(command: string, path: string | undefined): string {
  if (command.includes('/') || path === undefined) return command
  const candidates = path.split(delimiter).map((folder) => join(folder, command))
  return candidates.find(isExecutable) ?? command
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

type ProcessGroup = {
  signal(name: NodeJS.Signals): void
  end(): Promise<void>
  /** Resolves after the end of the last process of the group. */
  readonly gone: Promise<void>
}

function createGroup(child: ChildProcessWithoutNullStreams, options: ChildProcessOptions): ProcessGroup {
  const { pid } = child
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const { promise: gone, resolve: resolveGone } = Promise.withResolvers<void>()
  let isAlive = pid !== undefined
  let ending: Promise<void> | undefined
  // Descendants end with the leader.
  void exited.then(() => end())
  if (pid === undefined) markGone()
  return { signal, end, gone }

  function signal(name: NodeJS.Signals): void {
    if (!isAlive || pid === undefined) return
    if (!signalGroup(pid, name)) markGone()
  }

  function markGone(): void {
    isAlive = false
    resolveGone()
  }

  function end(): Promise<void> {
    ending ??= pid === undefined ? gone : endInSteps()
    return ending
  }

  async function endInSteps(): Promise<void> {
    child.stdin.end()
    await within(options.closeGraceMs, exited)
    signal('SIGTERM')
    await within(options.terminateGraceMs, emptied(options.terminateGraceMs))
    signal('SIGKILL')
    await within(options.terminateGraceMs, emptied(options.terminateGraceMs))
    // A process that survives SIGKILL blocks in the kernel, or waits to be reaped by init.
    markGone()
  }

  /**
   * Signals the group only after the end of the leader, whose process reserves the number of the group until
   * then.
   */
  async function emptied(limitMs: number): Promise<void> {
    await within(limitMs, exited)
    for (let waited = 0; isAlive && waited < limitMs; waited += groupPollMs) {
      if (child.exitCode === null && child.signalCode === null) return
      if (pid !== undefined && !signalGroup(pid, 0)) markGone()
      else await delay(groupPollMs)
    }
  }
}

/** False if the group has no process. */
function signalGroup(pid: number, name: NodeJS.Signals | 0): boolean {
  try {
    return kill(-pid, name)
  } catch {
    return false
  }
}

async function within(limitMs: number, promise: Promise<void>): Promise<void> {
  const done = new AbortController()
  const late = delay(limitMs, undefined, { signal: done.signal }).catch(() => {})
  await Promise.race([promise, late])
  done.abort()
}

function connect(
  child: ChildProcessWithoutNullStreams,
  group: ProcessGroup,
  { stdout, stderr, ended }: ChildListener,
): Child {
  let reason: string | undefined
  let over = false
  let stdinClosed = false
  let lateOutput: NodeJS.Timeout | undefined
  child.stdout.on('data', stdout)
  child.stderr.on('data', stderr)
  child.on('error', (error) => {
    reason ??= startProblem(error)
    if (child.pid === undefined) finish()
  })
  child.once('exit', (code, signalName) => {
    if (signalName === null) reason ??= `exit code ${code}`
    else reason ??= stdinClosed ? 'input closed by the process' : `signal ${signalName}`
    lateOutput = setTimeout(finish, lateOutputMs)
  })
  child.once('close', finish)
  // `exit` reports the end; errors of its pipes are expected.
  for (const pipe of [child.stdout, child.stderr]) pipe.on('error', () => {})
  child.stdin.on('error', () => {
    stdinClosed = true
    void group.end()
  })
  return {
    write(text, taken) {
      child.stdin.write(text, (error) => taken?.(!error))
    },
    waiting: () => child.stdin.writableLength,
    pause() {
      child.stdout.pause()
    },
    resume() {
      child.stdout.resume()
    },
    end: () => group.end(),
  }

  function finish(): void {
    if (over) return
    over = true
    clearTimeout(lateOutput)
    for (const pipe of [child.stdin, child.stdout, child.stderr]) pipe.destroy()
    ended(reason ?? 'closed')
  }
}

function failedChild(reason: string, listener: ChildListener): Child {
  queueMicrotask(() => listener.ended(reason))
  return {
    write(_, taken) {
      if (taken) queueMicrotask(() => taken(false))
    },
    waiting: () => 0,
    pause() {},
    resume() {},
    end: () => Promise.resolve(),
  }
}

function startProblem(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  switch (code) {
    case 'ENOENT':
      return 'command not found'
    case 'EACCES':
      return 'permission to run the command is denied'
    case 'EAGAIN':
    case 'ENOMEM':
      return 'the process limit of the system is reached'
    case 'EMFILE':
    case 'ENFILE':
      return 'too many files are open'
    default:
      return `start failed (${code ?? 'unknown reason'})`
  }
}
