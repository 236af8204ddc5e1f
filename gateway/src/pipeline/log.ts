import { pino } from 'pino'

/** Structured log. Fields must never hold secrets or content of requests. */
export type Log = {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

export type LogSink = Log & {
  /** Writes a line that is JSON already, with its newline. For the access log, where building it by hand saves most of the cost. */
  writeLine(line: string): void
  /** Writes out what is buffered; call before the process ends. */
  flush(): void
}

/** Lines wait at most this long for company: one write call per line would cost more than building the line. */
const flushEveryMs = 250
const bufferBytes = 16 * 1024

/** Owner of pino. JSON lines on a file descriptor, 1 is stdout. */
export function createLog(level: LogLevel, fileDescriptor: number): LogSink {
  const destination = pino.destination({
    fd: fileDescriptor,
    minLength: bufferBytes,
    maxWrite: 4 * bufferBytes,
    sync: true,
  })
  const logger = pino(
    {
      level,
      base: null,
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: describeError },
    },
    destination,
  )
  // The other flush also waits for the disk.
  /** Access lines not handed on yet: the destination measures every text it is given. */
  let lines = ''

  function handOn(): void {
    if (lines === '') return
    destination.write(lines)
    lines = ''
  }

  function flush(): void {
    handOn()
    // The other flush also waits for the disk.
    destination.flushSync()
  }

  const timer = setInterval(flush, flushEveryMs)
  timer.unref()

  function inOrder(write: (fields: object, message: string) => void): Log['info'] {
    return (fields, message) => {
      handOn()
      write(fields, message)
    }
  }

  return {
    debug: inOrder((fields, message) => logger.debug(fields, message)),
    info: inOrder((fields, message) => logger.info(fields, message)),
    warn: inOrder((fields, message) => logger.warn(fields, message)),
    error: inOrder((fields, message) => logger.error(fields, message)),
    writeLine(line) {
      if (level === 'warn' || level === 'error') return
      lines += line
      if (lines.length >= bufferBytes) handOn()
    },
    flush,
  }
}

/** An error as log fields, with its chain of causes and without a stack of the expected ones. */
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
