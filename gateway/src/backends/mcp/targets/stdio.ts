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
      doc: 'Program to run: a path, or a name that is searched for in `PATH`. No shell is involved.',
      example: 'npx',
    }),
    args: optional(
      list(string({ doc: 'One argument.' }), {
        doc: 'Its arguments.',
        example: ['-y', '@modelcontextprotocol/server-everything'],
      }),
    ),
    env: optional(
      map(string({ doc: 'Its value.', secret: true }), { doc: 'Environment variables set for it.' }),
    ),
    clearEnv: optional(
      boolean({
        doc: 'Gives it only `env`. Otherwise it also inherits the environment of the gateway, credentials in it included.',
        default: false,
      }),
    ),
  },
  { doc: 'A program that speaks MCP on its standard input and output. Every session runs one of its own.' },
)

export type StdioConfig = Infer<typeof stdioSchema>

/** Reports what the system would refuse whenever the program is started. */
export function checkStdio({ cmd, args, env }: StdioConfig, report: ReportIssue): void {
  const refuseNul = (text: string, path: (string | number)[]) => {
    if (text.includes('\0')) report(path, 'must not hold a NUL character')
  }
  refuseNul(cmd, ['cmd'])
  for (const [index, arg] of (args ?? []).entries()) refuseNul(arg, ['args', index])
  for (const [variable, value] of Object.entries(env ?? {})) {
    if (!/^[^=\0]+$/.test(variable)) {
      report(['env', variable], 'the name of a variable must not be empty nor hold = or NUL')
    }
    refuseNul(value, ['env', variable])
  }
}

export type StdioContext = Pick<CompileContext, 'clock' | 'log'> & {
  readonly spawn: SpawnProcess
  /** Places of programs, in total and for each client. */
  readonly programs: Slots
}

const maxLineBytes = 32 * 1024 * 1024
const maxErrorLineBytes = 2000
const maxGarbageChars = 200
/** So many lines in a row that are no messages mean that the program speaks something else. */
const maxGarbageLines = 1000
/** Of input that the program does not read. */
const maxWaitingChars = 8 * 1024 * 1024
const logBurst = 100
const logLinesPerSecond = 20

/**
 * A target that runs a program for every session and speaks newline-delimited JSON with it
 * (MCP 2025-11-25, Transports, stdio). What it writes to its error output goes to the log with the target's name.
 */
export function compileStdio(targetName: string, config: StdioConfig, context: StdioContext): Target {
  const { clock, log, spawn, programs } = context
  const command: ChildCommand = {
    command: config.cmd,
    args: config.args ?? [],
    env: config.env ?? {},
    clearEnv: config.clearEnv ?? false,
  }
  const throttle = createLogThrottle(clock, logBurst, logLinesPerSecond)

  function logLine(fields: object, message: string): void {
    const suppressed = throttle.admit()
    if (suppressed === undefined) return
    log.info({ target: targetName, ...fields, ...(suppressed > 0 ? { suppressed } : {}) }, message)
  }

  function open(listener: WireListener, call: CallContext, onGarbage: { count: number }): Wire {
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
        listener.ended(`it wrote a line of more than ${maxLineBytes} bytes`)
        return
      }
      if (line === '') return
      const before = onGarbage.count
      listener.message(line)
      if (onGarbage.count === before) onGarbage.count = 0
      else if (onGarbage.count > maxGarbageLines) {
        listener.ended(`it wrote ${maxGarbageLines} lines in a row that are no MCP messages`)
      }
    })
    const stderr = createLineSplitter(maxErrorLineBytes, (line, whole) =>
      logLine({ line: whole ? line : `${line}…` }, 'error output of an MCP target'),
    )
    return wire.over(child, admitted.slot)
  }

  return {
    name: targetName,
    sessionless: false,
    open() {
      const onGarbage = { count: 0 }
      return createDuplexSession({
        name: targetName,
        log,
        open: (listener, call) => open(listener, call, onGarbage),
        onInvalid(text, problem) {
          onGarbage.count += 1
          // Broken JSON may hold what a tool was to answer, which is nothing for the log.
          const line = /^\s*[[{]/.test(text) ? {} : { line: text.slice(0, maxGarbageChars) }
          logLine({ ...line, problem }, 'MCP target wrote a line that is no message')
        },
      })
    },
    // The program of a session runs in one place only.
    resume: () => undefined,
  }
}

function createWire(targetName: string, listener: WireListener) {
  /** Told of a message that did not go out only after the session knows why the program ended. */
  let unsent: ((reason: string) => void)[] = []
  let endedBecause: string | undefined
  return {
    ended(reason: string): void {
      endedBecause = reason
      listener.ended(reason)
      for (const tell of unsent) tell(reason)
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
          else if (endedBecause !== undefined) sent({ kind: 'ended', reason: endedBecause })
          else unsent.push((reason) => sent({ kind: 'ended', reason }))
        })
      },
      pause: child.pause,
      resume: child.resume,
      // Sessions close their wire when the program has ended by itself, too.
      async close() {
        await child.end()
        // Free once the program and all that it started are gone.
        slot.release()
      },
    }),
  }
}

/** The wire of a program that was not started. */
function refusedWire(failure: TargetFailure): Wire {
  return {
    send: (_text, _context, sent) => queueMicrotask(() => sent(failure)),
    pause() {},
    resume() {},
    close: () => Promise.resolve(),
  }
}

/** Line ends in JSON can only stand between tokens, where a blank says the same. */
function oneLine(json: string): string {
  return json.includes('\n') || json.includes('\r') ? json.replaceAll(/[\r\n]+/g, ' ') : json
}
