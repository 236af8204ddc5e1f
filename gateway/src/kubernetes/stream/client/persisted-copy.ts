import { createCipheriv, createDecipheriv, hkdfSync } from 'node:crypto'
import type * as nodeFiles from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { zstdCompress, zstdDecompress } from 'node:zlib'
import type { Clock } from '../../../lib/clock.ts'
import { runYielding, type YieldPoint } from '../../../lib/scheduling/yielding.ts'
import { messageOf } from '../../../lib/thrown.ts'
import type { Log } from '../../../telemetry/log.ts'
import { fullMessage, readLine } from '../parts/messages.ts'
import { createAssembly, type ReceivedConfig } from './received.ts'

/** Functions of `node:fs/promises` in use. */
export type CopyFiles = Pick<typeof nodeFiles, 'open' | 'readFile' | 'rename' | 'rm' | 'stat'>

export type PersistedCopyOptions = {
  /** Folder of the copy. */
  readonly folder: string
  /** Text of SESSION_KEY, from which the key of the copy is derived. */
  readonly sessionKey: string
  /** `<namespace>/<name>`. */
  readonly gateway: string
  readonly files: CopyFiles
  readonly clock: Pick<Clock, 'now'>
  readonly randomBytes: (length: number) => Uint8Array
  readonly yieldPoint: YieldPoint
  readonly log: Log
  /** Shortest time between two writes. */
  readonly everyMs?: number
}

/** The last accepted configuration on disk, encrypted, for a start without controller. */
export type PersistedCopy = {
  /** Undefined without a valid copy; the reason is logged. */
  read(): Promise<CopiedConfig | undefined>
  /** Writes a configuration; of several within a short time, the last one. */
  save(received: ReceivedConfig): void
  /** As `save`, if the time of the copy is older than some minutes. */
  confirm(received: ReceivedConfig): void
  /** Writes what is pending. */
  close(): Promise<void>
}

export type CopiedConfig = {
  readonly received: ReceivedConfig
  /** Time of the write in milliseconds since the Unix epoch. */
  readonly savedAt: number
}

const fileName = 'configuration.enc'
const defaultEveryMs = 10_000
/** Bound on the error of the age that the copy states. */
const confirmEveryMs = 300_000
const ivBytes = 12
const tagBytes = 16
const timeBytes = 8
/** Bounds on the file and on its text. */
const maxFileBytes = 128 * 1024 * 1024
const maxTextBytes = 1024 * 1024 * 1024

const compress = promisify(zstdCompress)
const decompress = promisify(zstdDecompress)

export function createPersistedCopy(options: PersistedCopyOptions): PersistedCopy {
  const { folder, files, clock, log, everyMs = defaultEveryMs } = options
  const path = join(folder, fileName)
  const seal = createSeal(options)
  let pending: ReceivedConfig | undefined
  let writing: Promise<void> | undefined
  let timer: NodeJS.Timeout | undefined
  let lastAt = Number.NEGATIVE_INFINITY

  async function write(received: ReceivedConfig): Promise<void> {
    lastAt = clock.now()
    try {
      const text = await textOf(received, options.yieldPoint)
      await replaceFile(files, path, seal.encrypt(await compress(text), clock.now()))
    } catch (error) {
      log.warn({ reason: messageOf(error) }, 'configuration copy not written')
    }
  }

  async function writePending(): Promise<void> {
    while (pending !== undefined) {
      const received = pending
      pending = undefined
      await write(received)
    }
  }

  function schedule(): void {
    if (timer !== undefined || writing !== undefined) return
    timer = setTimeout(
      () => {
        timer = undefined
        writing = writePending().finally(() => {
          writing = undefined
          if (pending !== undefined) schedule()
        })
      },
      Math.max(0, lastAt + everyMs - clock.now()),
    )
  }

  return {
    async read() {
      try {
        const { size } = await files.stat(path)
        if (size > maxFileBytes) throw new Error('the file is too large')
        const { bytes, savedAt } = seal.decrypt(await files.readFile(path))
        const text = await decompress(bytes, { maxOutputLength: maxTextBytes })
        return { received: await receivedOf(text.toString(), options.yieldPoint), savedAt }
      } catch (error) {
        if (!isMissing(error)) log.warn({ reason: messageOf(error) }, 'configuration copy ignored')
        return undefined
      }
    },
    save(received) {
      pending = received
      schedule()
    },
    confirm(received) {
      if (clock.now() - lastAt < confirmEveryMs || pending !== undefined) return
      pending = received
      schedule()
    },
    async close() {
      clearTimeout(timer)
      timer = undefined
      await writing
      await writePending()
    },
  }
}

async function textOf(received: ReceivedConfig, yieldPoint: YieldPoint): Promise<Buffer> {
  const pieces: string[] = []
  function* collect(): Generator<void, void> {
    for (const piece of fullMessage(received)) {
      pieces.push(piece)
      yield
    }
  }
  await runYielding(collect(), yieldPoint)
  return Buffer.from(pieces.join(''))
}

async function receivedOf(text: string, yieldPoint: YieldPoint): Promise<ReceivedConfig> {
  const assemble = createAssembly(undefined)
  function* read(): Generator<void, ReceivedConfig | undefined> {
    for (const line of text.split('\n')) {
      const result = assemble(readLine(line), line)
      if (result.kind === 'received') return result.received
      if (result.kind === 'broken') return undefined
      yield
    }
    return undefined
  }
  const received = await runYielding(read(), yieldPoint)
  if (received === undefined) throw new Error('the content is not a configuration of this version')
  return received
}

type Seal = {
  encrypt(bytes: Uint8Array, savedAt: number): Buffer
  /** Throws if the file is not a copy of this Gateway with this key. */
  decrypt(file: Buffer): { bytes: Buffer; savedAt: number }
}

/** AES-256-GCM with a key of its own, bound to the Gateway, the format and the time. */
function createSeal({ sessionKey, gateway, randomBytes }: PersistedCopyOptions): Seal {
  const key = Buffer.from(hkdfSync('sha256', sessionKey, '', 'tollgate configuration copy', 32))
  const boundTo = (time: Uint8Array) => Buffer.concat([Buffer.from(`tollgate-copy-1 ${gateway} `), time])
  return {
    encrypt(bytes, savedAt) {
      const time = Buffer.alloc(timeBytes)
      time.writeDoubleBE(savedAt)
      const iv = randomBytes(ivBytes)
      const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(boundTo(time))
      const body = cipher.update(bytes)
      return Buffer.concat([time, iv, body, cipher.final(), cipher.getAuthTag()])
    },
    decrypt(file) {
      if (file.length < timeBytes + ivBytes + tagBytes) throw new Error('the file is truncated')
      const time = file.subarray(0, timeBytes)
      const iv = file.subarray(timeBytes, timeBytes + ivBytes)
      const decipher = createDecipheriv('aes-256-gcm', key, iv, { authTagLength: tagBytes })
      decipher.setAAD(boundTo(time)).setAuthTag(file.subarray(-tagBytes))
      try {
        const body = decipher.update(file.subarray(timeBytes + ivBytes, -tagBytes))
        return { bytes: Buffer.concat([body, decipher.final()]), savedAt: time.readDoubleBE() }
      } catch {
        throw new Error('the file is damaged, or of another Gateway or SESSION_KEY')
      }
    },
  }
}

/** Readers, and a power failure, see either the old file or the new one. */
async function replaceFile(files: CopyFiles, path: string, bytes: Buffer): Promise<void> {
  const temporary = `${path}.tmp`
  // A file of a process that was killed.
  await files.rm(temporary, { force: true })
  const file = await files.open(temporary, 'wx', 0o600)
  try {
    await file.writeFile(bytes)
    await file.sync()
  } finally {
    await file.close()
  }
  await files.rename(temporary, path)
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT'
}
