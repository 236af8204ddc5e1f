// npm runs commands in a shell and forwards signals to that shell only. Many shells exit without forwarding
// them. The syntax stays within Node 12, like tollgate.mjs.

const pollMs = 250

/**
 * Calls `onEnd` once if the shell that npm started this process in exits first. Does nothing outside npm and
 * on Windows, where console signals reach every process.
 */
export function watchNpmShell(onEnd) {
  if (process.env.npm_lifecycle_event === undefined || process.platform === 'win32') return
  const shell = process.ppid
  const timer = setInterval(() => {
    if (process.ppid === shell) return
    clearInterval(timer)
    onEnd()
  }, pollMs)
  timer.unref()
}
