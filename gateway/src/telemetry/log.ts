import { write } from 'node:fs'
import { pino } from 'pino'
import { createLineWriter, type LineWriter } from './line-writer.ts'
import { textLines } from './text-lines.ts'

/** Structured log. Fields must not contain secrets or request content. */
export type Log = {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
  /** Writes an audit record, as level `info`; the minimum level does not apply. */
  audit(record: object, message: string): void
}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

export type LogSink = Log & {
  /** Writes a complete JSON line with its newline, for the access log. */
  writeLine(line: string): void
  /** Writes buffered lines; wait for it before the process ends. */
  flush(): Promise<void>
}

/** Log of the process. */
export type ProcessLog = LogSink & {
  /** Writes complete lines of another thread, after the number of its lost lines. */
  writeBatch(lines: string, lost: number): void
  /** Sets the minimum level. */
  setLevel(level: LogLevel): void
  /** Sets the form of all lines, also those of other threads. */
  setFormat(format: 'json' | 'text'): void
}

const flushEveryMs = 250
const fullAt = 16 * 1024
/** Lines of about ten thousand requests. */
const mostWaiting = 4 * 1024 * 1024

/** Creates the writer of the log to a file descriptor; 1 is stdout. */
export function createLogWriter(fileDescriptor: number): LineWriter {
  return createLineWriter(write, {
    fileDescriptor,
    flushEveryMs,
    fullAt,
    mostWaiting,
    lossNotice: (lines) =>
      `{"level":"warn"${time()},"lines":${lines},"msg":"log lines lost: reader too slow"}\n`,
  })
}

/** Owner of pino. Creates a log of JSON lines. */
export function createLog(level: LogLevel, writer: LineWriter): ProcessLog {
  let writesInfo = level !== 'warn' && level !== 'error'
  let isText = false
  const lines = {
    write(text: string) {
      writer.write(isText ? textLines(text) : text)
    },
  }
  const options = {
    base: null,
    timestamp: time,
    formatters: { level: (label: string) => ({ level: label }) },
    serializers: { err: describeError },
  }
  const logger = pino({ ...options, level }, lines)
  const auditLogger = pino({ ...options, level: 'info' }, lines)
  return {
    debug: (fields, message) => logger.debug(fields, message),
    info: (fields, message) => logger.info(fields, message),
    warn: (fields, message) => logger.warn(fields, message),
    error: (fields, message) => logger.error(fields, message),
    audit: (record, message) => auditLogger.info({ audit: record }, message),
    writeLine(line) {
      if (writesInfo) lines.write(line)
    },
    writeBatch(batch, lost) {
      writer.lose(lost)
      lines.write(batch)
    },
    flush: writer.flush,
    setFormat(format) {
      isText = format === 'text'
    },
    setLevel(next) {
      logger.level = next
      writesInfo = next !== 'warn' && next !== 'error'
    },
  }
}

function time(): string {
  return `,"time":"${new Date().toISOString()}"`
}

/** Log fields of an error, with its chain of causes and without stacks of expected errors. */
export function describeError(error: unknown): object {
  if (!(error instanceof Error)) return { message: String(error) }
  const { name, message, cause } = error
  const code = 'code' in error ? error.code : undefined
  return {
    name,
    message,
    ...(code === undefined ? {} : { code }),
    ...(name === 'GatewayError' ? {} : { stack: error.stack }),
    ...(cause === undefined ? {} : { cause: describeError(cause) }),
  }
}
