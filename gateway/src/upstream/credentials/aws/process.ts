import type { CompileContext } from '../../../pipeline/compile-context.ts'
import type { ChildCommand, SpawnProcess } from '../../../process/child-process.ts'
import { parseObject, unavailable } from '../cloud/fetch-token.ts'
import type { TimedToken } from '../token-cache.ts'
import { type RequestKeys, timedKeys } from './keys.ts'
import type { AwsCredentials } from './sigv4.ts'

const timeoutMs = 30_000
const maxOutputBytes = 64 * 1024

/**
 * Compiles `credential_process` of a profile, a program that prints keys:
 * https://docs.aws.amazon.com/sdkref/latest/guide/feature-process-credentials.html. It runs without a shell.
 * Its output is in no log and no error. Throws for a command without an end of a quotation.
 */
export function compileProcess(commandLine: string, profile: string, context: CompileContext): RequestKeys {
  const at = `aws: profile "${profile}": credential_process`
  const { spawn, clock } = context
  const [command, ...args] = splitCommand(commandLine, at)
  if (command === undefined || command === '') throw new Error(`${at}: must be a command`)
  return async () => {
    const output = await run({ command, args, env: {}, clearEnv: false }, spawn, at)
    return keysIn(output, at, () => clock.now())
  }
}

type Shape = { readonly word: RegExp; readonly unquoted: (text: string) => string }

/** Parts of a word: quotations, and characters between them. */
const shapes: readonly Shape[] = [
  { word: /'([^']*)'/y, unquoted: (text) => text },
  { word: /"((?:[^"\\]|\\.)*)"/sy, unquoted: (text) => text.replace(/\\(["\\])/g, '$1') },
  { word: /((?:[^\s'"\\]|\\.)+)/sy, unquoted: (text) => text.replace(/\\(.)/gs, '$1') },
]

/** Splits a command as the AWS CLI does (`shlex.split` of Python): no variables, patterns or operators. */
export function splitCommand(text: string, at: string): string[] {
  const words: string[] = []
  let word: string | undefined
  let index = 0
  while (index < text.length) {
    if (/\s/.test(text.charAt(index))) {
      if (word !== undefined) words.push(word)
      word = undefined
      index += 1
      continue
    }
    const part = partAt(text, index)
    if (part === undefined) throw new Error(`${at}: a quotation or an escape has no end`)
    word = (word ?? '') + part.value
    index = part.end
  }
  return word === undefined ? words : [...words, word]
}

function partAt(text: string, index: number): { value: string; end: number } | undefined {
  for (const { word, unquoted } of shapes) {
    word.lastIndex = index
    const [, content] = word.exec(text) ?? []
    if (content !== undefined) return { value: unquoted(content), end: word.lastIndex }
  }
  return undefined
}

/** Standard output of a program that ends with exit code 0, within the limits. */
function run(command: ChildCommand, spawn: SpawnProcess, at: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const chunks: Uint8Array[] = []
  let size = 0
  const child = spawn(command, {
    stdout(chunk) {
      size += chunk.byteLength
      if (size <= maxOutputBytes) chunks.push(chunk)
      else abort(`more than ${maxOutputBytes} bytes of output`)
    },
    // May quote credentials.
    stderr() {},
    ended(reason) {
      clearTimeout(timer)
      if (reason === 'exit code 0') resolve(Buffer.concat(chunks).toString())
      else reject(unavailable(`${at} failed: ${reason} (run its command as the user of the gateway)`))
    },
  })
  const timer = setTimeout(() => abort(`no end within ${timeoutMs} ms`), timeoutMs)

  function abort(reason: string): void {
    chunks.length = 0
    reject(unavailable(`${at} failed: ${reason}`))
    void child.end()
  }

  return promise
}

/** Period after which a program without an end of its keys runs again. */
const lifetimeWithoutEndMs = 3_600_000

function keysIn(text: string, at: string, now: () => number): TimedToken<AwsCredentials> {
  const output = parseObject(text)
  const { Version: version, AccessKeyId: id, SecretAccessKey: secret, SessionToken: sessionToken } = output
  if (version !== 1) throw unavailable(`${at}: output must be a JSON object with "Version": 1`)
  const { Expiration: end } = output
  const keys = timedKeys({ id, secret, sessionToken: sessionToken ?? undefined, end }, { service: at, now })
  if (end === undefined || end === null) return { ...keys, lifetimeMs: lifetimeWithoutEndMs }
  if (typeof end !== 'string' || Number.isNaN(Date.parse(end)))
    throw unavailable(`${at}: Expiration must be a timestamp of ISO 8601`)
  if (keys.lifetimeMs === 0) throw unavailable(`${at}: the keys have expired: check Expiration and the clock`)
  return keys
}
