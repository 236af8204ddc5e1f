import { useEffect, useState } from 'react'
import { useLocation } from 'wouter'
import { Button } from '../components/action/button.tsx'
import { Dialog } from '../components/layout/dialog.tsx'

/**
 * Asks before a page with unsaved input is left: by a link of the console, by the buttons of the browser, or by
 * closing the window. Render it in the page.
 */
export function UnsavedGuard({ dirty }: { dirty: boolean }) {
  const [target, setTarget] = useState<string>()
  const [, navigate] = useLocation()
  useEffect(() => {
    if (!dirty) return
    return guard((href) => setTarget(href))
  }, [dirty])
  if (!dirty || target === undefined) return null
  const leave = () => {
    setTarget(undefined)
    allowed = true
    navigate(target)
    allowed = false
  }
  return (
    <Dialog
      open
      width="narrow"
      onOpenChange={(open) => open || setTarget(undefined)}
      title="Leave without saving?"
      about="The input of this page has not been saved."
      footer={
        <>
          <Button onClick={() => setTarget(undefined)}>Stay</Button>
          <Button tone="danger" onClick={leave}>
            Leave without saving
          </Button>
        </>
      }
    />
  )
}

/** True during the navigation that the user has confirmed. */
let allowed = false

/** Whether a navigation inside of the console may proceed; called by the router for each. */
let blocks: ((href: string) => void) | undefined

/** For the router: navigates, or asks first while a page has unsaved input. */
export function guardNavigation<Options>(
  navigate: (to: string, options?: Options) => void,
  to: string,
  options?: Options,
): void {
  if (blocks === undefined || allowed || samePage(to)) navigate(to, options)
  else blocks(to)
}

/** Filters and tabs in the query are no other page. */
function samePage(to: string): boolean {
  return to.startsWith('?') || `/ui${to.split(/[?#]/)[0]}` === location.pathname
}

function guard(ask: (href: string) => void): () => void {
  const address = location.href
  const onUnload = (event: BeforeUnloadEvent) => event.preventDefault()
  const onPop = (event: PopStateEvent) => {
    const target = location.pathname + location.search
    if (location.pathname === new URL(address).pathname) return
    // The browser has already changed the address: it is put back before the router sees the event.
    event.stopImmediatePropagation()
    history.pushState(null, '', address)
    ask(target.replace(/^\/ui/, '') || '/')
  }
  blocks = ask
  window.addEventListener('beforeunload', onUnload)
  window.addEventListener('popstate', onPop, true)
  return () => {
    blocks = undefined
    window.removeEventListener('beforeunload', onUnload)
    window.removeEventListener('popstate', onPop, true)
  }
}
