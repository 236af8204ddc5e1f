import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { kill } from 'node:process'
import { setTimeout as delay } from 'node:timers/promises'
import { createProcessGuardian } from './guardian.ts'

/** A program to run, never through a shell. */
export type ChildCommand = {
  /** A path, or a name that is searched for in `PATH`. */
  command: string
  args: readonly string[]
  /** Variables set for it. */
  env: Readonly<Record<string, string>>
  /** Whether it gets only `env`, without the environment of the gateway. */
  clearEnv: boolean
}

/** What a child does. Nothing is called before `spawn` has returned. */
export type ChildListener = {
  stdout(chunk: Uint8Array): void
  stderr(chunk: Uint8Array): void
  /** Once, after the last output: why it ended or never began, for example `exit code 1`. */
  ended(reason: string): void
}

/** A running program with a process group of its own. */
export type Child = {
  /**
   * Writes to its input. `taken` is told whether the text went into the pipe; it is called once, never at once.
   * A child that has closed its input is ended.
   */
  write(text: string, taken?: (ok: boolean) => void): void
  /** Characters written that the pipe had no room for yet. */
  waiting(): number
  /** Stops reading its output, so that it has to wait once the pipe is full. */
  pause(): void
  resume(): void
  /**
   * Ends it and all that it started: closes its input, then SIGTERM, then SIGKILL, each after a while.
   * Resolves once its process group is gone. Harmless when called twice.
   */
  end(): Promise<void>
}

export type SpawnProcess = (command: ChildCommand, listener: ChildListener) => Child

/** The programs that the gateway runs. */
export type ChildProcesses = {
  spawn: SpawnProcess
  /** How many process groups are not gone yet. */
  count(): number
  /** Ends them all, as `Child.end` does, and starts no more. */
  close(): Promise<void>
  /** Kills them all at once: for the last moment of the gateway's own process. */
  killAll(): void
}

export type ChildProcessOptions = {
  /** What children inherit unless their command says `clearEnv`; its `PATH` finds their programs. */
  environment: Readonly<Record<string, string | undefined>>
  /** Bound on process groups alive; more are refused. */
  maxChildren: number
  /** How long a child may take to end by itself once its input is closed, and then after SIGTERM. */
  closeGraceMs: number
  terminateGraceMs: number
}

/** Output that comes after a child's end, through pipes that others hold open, is waited for this long. */
const lateOutputMs = 500
const groupPollMs = 50

/** Owner of child processes. Each is the leader of its own group, so that what it starts ends with it. */
export function createChildProcesses(options: ChildProcessOptions): ChildProcesses {
  const groups = new Set<ProcessGroup>()
  const guardian = createProcessGuardian()
  let closing = false
  return {
    spawn(command, listener) {
      if (closing) return failedChild('the gateway is stopping', listener)
      if (groups.size >= options.maxChildren) {
        return failedChild(`more than ${options.maxChildren} processes would run`, listener)
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
          guardian.forget(pid)
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

/** A child without a `PATH` of its own is still found where the gateway would find it. */
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
  /** Resolves once no process of the group is left. */
  readonly gone: Promise<void>
}

function createGroup(child: ChildProcessWithoutNullStreams, options: ChildProcessOptions): ProcessGroup {
  const { pid } = child
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const { promise: gone, resolve: markGone } = Promise.withResolvers<void>()
  let left = pid !== undefined
  let ending: Promise<void> | undefined
  // What the leader leaves behind has lost its purpose.
  void exited.then(() => end())
  if (pid === undefined) markGone()
  return { signal, end, gone }

  function signal(name: NodeJS.Signals): void {
    if (!left || pid === undefined) return
    if (!signalGroup(pid, name)) leave()
  }

  function leave(): void {
    left = false
    markGone()
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
    // What survives SIGKILL is in the kernel's hands, or waits for an init process to collect it.
    leave()
  }

  /** Asks the system only after the leader's end: until then its own process keeps the group's number taken. */
  async function emptied(limitMs: number): Promise<void> {
    await within(limitMs, exited)
    for (let waited = 0; left && waited < limitMs; waited += groupPollMs) {
      if (child.exitCode === null && child.signalCode === null) return
      if (pid !== undefined && !signalGroup(pid, 0)) leave()
      else await delay(groupPollMs)
    }
  }
}

/** False when the group has no process any more. */
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
  let deaf = false
  let lateOutput: NodeJS.Timeout | undefined
  child.stdout.on('data', stdout)
  child.stderr.on('data', stderr)
  child.on('error', (error) => {
    reason ??= startProblem(error)
    if (child.pid === undefined) finish()
  })
  child.once('exit', (code, signalName) => {
    if (signalName === null) reason ??= `exit code ${code}`
    else reason ??= deaf ? 'it closed its input' : `signal ${signalName}`
    lateOutput = setTimeout(finish, lateOutputMs)
  })
  child.once('close', finish)
  // Its end is reported by `exit`; a pipe that broke because of it is no news.
  for (const pipe of [child.stdout, child.stderr]) pipe.on('error', () => {})
  child.stdin.on('error', () => {
    deaf = true
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
    ended(reason ?? 'it was closed')
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
      return 'there is no such command'
    case 'EACCES':
      return 'running the command is not allowed'
    case 'EAGAIN':
    case 'ENOMEM':
      return 'the system has no room for another process'
    case 'EMFILE':
    case 'ENFILE':
      return 'too many files are open'
    default:
      return `it could not be started (${code ?? 'unknown reason'})`
  }
}
