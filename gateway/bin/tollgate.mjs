#!/usr/bin/env node
// Starts the gateway: dist/tollgate.js in the published package, the source in a checkout.
// The syntax and the imports stay what Node 12 understands, so that an old Node says why it cannot go on.
import { spawn } from 'child_process'
import { existsSync, readFileSync } from 'fs'
import { fileURLToPath } from 'url'
import { watchNpmShell } from './npm-shell.mjs'

const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
const required = manifest.engines.node.replace('>=', '')
const source = new URL('../src/main.ts', import.meta.url)
const checkoutNode = fileURLToPath(new URL('../../node_modules/.bin/node', import.meta.url))
const isCheckout = existsSync(source)

if (isRecent(process.versions.node, required)) {
  // The gateway handles the signal as if npm had forwarded it.
  watchNpmShell(() => process.kill(process.pid, 'SIGTERM'))
  import(isCheckout ? source.href : new URL('../dist/tollgate.js', import.meta.url).href)
} else if (isCheckout && existsSync(checkoutNode)) {
  runOn(checkoutNode)
} else {
  process.stderr.write(`tollgate needs Node.js ${required} or newer; this is ${process.versions.node}\n`)
  process.exitCode = 1
}

function isRecent(version, minimum) {
  const have = version.split('.').map(Number)
  const need = minimum.split('.').map(Number)
  for (let i = 0; i < need.length; i++) {
    if (have[i] !== need[i]) return have[i] > need[i]
  }
  return true
}

function runOn(node) {
  const child = spawn(node, [fileURLToPath(import.meta.url)].concat(process.argv.slice(2)), {
    stdio: 'inherit',
  })
  // At a terminal ^C reaches the whole process group: passing it on as well would count as a second signal.
  process.on('SIGINT', () => {
    if (!process.stdin.isTTY) child.kill('SIGINT')
  })
  process.on('SIGTERM', () => child.kill('SIGTERM'))
  watchNpmShell(() => child.kill('SIGTERM'))
  child.on('exit', (code, signal) => {
    process.exitCode = signal === null ? code : 1
  })
}
