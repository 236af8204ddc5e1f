import { GatewayError } from '../../../lib/gateway-error.ts'
import type { CompileContext } from '../../../pipeline/compile-context.ts'
import type { Child, ChildCommand, SpawnProcess } from '../../../process/child-process.ts'
import { boolean, type Infer, list, map, name, object, optional, string } from '../../../schema/dsl.ts'
import type { ReportIssue } from '../../../schema/report.ts'
import type { TargetFailure } from '../message/message.ts'
import type { Slot, Slots } from '../sessions/admission.ts'
import { createDuplexSession, type Wire, type WireListener } from './duplex/duplex.ts'
import { createLineSplitter } from './lines.ts'
import { createLogThrottle } from './log-throttle.ts'
import type { CallContext, Target } from './target.ts'

/** `mcp.targets[].stdio`. */
export const stdioSchema = object(
  {
    cmd: name({
      doc: 'Program: a path, or a name in `PATH`. It runs without a shell.',
      example: 'npx',
    }),
    args: optional(
      list(string({ doc: 'Argument.' }), {
        doc: 'Arguments of the program.',
        example: ['-y', '@modelcontextprotocol/server-everything'],
      }),
    ),
    env: optional(
      map(string({ doc: 'Value of the variable.', secret: true }), {
        doc: 'Environment variables of the program.',
      }),
    ),
    clearEnv: optional(
      boolean({
        doc: 'Runs the program with `env` only. Otherwise it also inherits the environment of the gateway, including credentials.',
        default: false,
      }),
    ),
    clear_env: optional(boolean({ doc: 'Alias of `clearEnv`.', advanced: true })),
  },
  { doc: 'Program with MCP on standard input and output. Each session starts a separate process.' },
)

export type StdioConfig = Infer<typeof stdioSchema>

/** Reports commands and variables that the operating system rejects. */
export function checkStdio(config: StdioConfig, report: ReportIssue): void {
  const { cmd, args, env } = config
  if (config.clearEnv !== undefined && config.clear_env !== undefined)
    report(['clear_env'], 'is the same as clearEnv: keep one of them')
  const refuseNul = (text: string, path: (string | number)[]) => {
    if (text.includes('\0')) report(path, 'must not contain a NUL character')
  }
  refuseNul(cmd, ['cmd'])
  for (const [index, arg] of (args ?? []).entries()) refuseNul(arg, ['args', index])
  for (const [variable, value] of Object.entries(env ?? {})) {
    if (!/^[^=\0]+$/.test(variable)) {
      report(['env', variable], 'variable name must not be empty or contain = or NUL')
    }
    refuseNul(value, ['env', variable])
  }
}

export type StdioContext = Pick<CompileContext, 'clock' | 'log'> & {
  readonly spawn: SpawnProcess
  /** Slots of programs, in total and per client. */
  readonly programs: Slots
}

const maxLineBytes = 32 * 1024 * 1024
const maxErrorLineBytes = 2000
const maxLoggedChars = 200
/** Maximum number of consecutive invalid lines of a program. */
const maxInvalidLines = 1000
/** Maximum unread input of the program. */
const maxWaitingChars = 8 * 1024 * 1024
const logBurst = 100
const logLinesPerSecond = 20

/**
 * Target with one program per session and newline-delimited JSON (MCP 2025-11-25, Transports, stdio). Its
 * standard error is logged with the target name.
 */
export function compileStdio(targetName: string, config: StdioConfig, context: StdioContext): Target {
  const { clock, log, spawn, programs } = context
  const command: ChildCommand = {
    command: config.cmd,
    args: config.args ?? [],
    env: config.env ?? {},
    clearEnv: config.clearEnv ?? config.clear_env ?? false,
  }
  const throttle = createLogThrottle(clock, logBurst, logLinesPerSecond)

  function logLine(fields: object, message: string): void {
    const suppressed = throttle.admit()
    if (suppressed === undefined) return
    log.info({ target: targetName, ...fields, ...(suppressed > 0 ? { suppressed } : {}) }, message)
  }

  function open(listener: WireListener, call: CallContext, invalidLines: { count: number }): Wire {
    const admitted = programs.admit(call.client?.())
    if (admitted.kind === 'refused') return refusedWire(admitted.failure)
    const wire = createWire(targetName, listener)
    const child = spawn(command, {
      stdout: (chunk) => stdout.push(chunk),
      stderr: (chunk) => stderr.push(chunk),
      ended: wire.ended,
    })
    const stdout = createLineSplitter(maxLineBytes, (line, whole) => {
      if (!whole) {
        listener.ended(`a line exceeds ${maxLineBytes} bytes`)
        return
      }
      if (line === '') return
      const before = invalidLines.count
      listener.message(line)
      if (invalidLines.count === before) invalidLines.count = 0
      else if (invalidLines.count > maxInvalidLines) {
        listener.ended(`${maxInvalidLines} consecutive lines are not MCP messages`)
      }
    })
    const stderr = createLineSplitter(maxErrorLineBytes, (line, whole) =>
      logLine({ line: whole ? line : `${line}…` }, 'MCP target error output received'),
    )
    return wire.over(child, admitted.slot)
  }

  return {
    name: targetName,
    sessionless: false,
    open() {
      const invalidLines = { count: 0 }
      return createDuplexSession({
        name: targetName,
        log,
        open: (listener, call) => open(listener, call, invalidLines),
        onInvalid(text, problem) {
          invalidLines.count += 1
          // Invalid JSON may contain tool results, which must not be logged.
          const line = /^\s*[[{]/.test(text) ? {} : { line: text.slice(0, maxLoggedChars) }
          logLine({ ...line, problem }, 'invalid MCP target output discarded')
        },
      })
    },
    // A session is bound to its program.
    resume: () => undefined,
  }
}

function createWire(targetName: string, listener: WireListener) {
  /** Callbacks of unsent messages, which wait for the exit reason of the program. */
  let unsent: ((reason: string) => void)[] = []
  let endReason: string | undefined
  return {
    ended(reason: string): void {
      endReason = reason
      listener.ended(reason)
      for (const report of unsent) report(reason)
      unsent = []
    },
    over: (child: Child, slot: Slot): Wire => ({
      send(text, _, sent) {
        if (child.waiting() > maxWaitingChars) {
          const error = new GatewayError('upstream_timeout', `target "${targetName}" does not read its input`)
          queueMicrotask(() => sent({ kind: 'error', error }))
          return
        }
        child.write(`${oneLine(text)}\n`, (ok) => {
          if (ok) sent(undefined)
          else if (endReason !== undefined) sent({ kind: 'ended', reason: endReason })
          else unsent.push((reason) => sent({ kind: 'ended', reason }))
        })
      },
      pause: child.pause,
      resume: child.resume,
      // Sessions also close their wire after a program exit.
      async close() {
        await child.end()
        // The slot is free after the exit of the program and its descendants.
        slot.release()
      },
    }),
  }
}

/** Wire of a program that was not started. */
function refusedWire(failure: TargetFailure): Wire {
  return {
    send: (_text, _context, sent) => queueMicrotask(() => sent(failure)),
    pause() {},
    resume() {},
    close: () => Promise.resolve(),
  }
}

/** Replaces line breaks, which JSON permits only between tokens, with blanks. */
function oneLine(json: string): string {
  return json.includes('\n') || json.includes('\r') ? json.replaceAll(/[\r\n]+/g, ' ') : json
}
