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

/** Page with unsaved input: its address, and the question before it is left. */
type Block = { readonly address: string; ask(href: string): void }

let block: Block | undefined
/** True during the navigation that the user has confirmed. */
let allowed = false

function guard(ask: (href: string) => void): () => void {
  const onUnload = (event: BeforeUnloadEvent) => event.preventDefault()
  const own: Block = { address: location.href, ask }
  block = own
  window.addEventListener('beforeunload', onUnload)
  return () => {
    if (block === own) block = undefined
    window.removeEventListener('beforeunload', onUnload)
  }
}

/** For the router: navigates, or asks first while a page has unsaved input. */
export function guardNavigation<Options>(
  navigate: (to: string, options?: Options) => void,
  to: string,
  options?: Options,
): void {
  // Filters and tabs in the query are no other page.
  const isSamePage = to.startsWith('?') || to.split(/[?#]/)[0] === location.pathname
  if (block === undefined || allowed || isSamePage) navigate(to, options)
  else block.ask(withoutBase(to))
}

function withoutBase(address: string): string {
  return address.replace(/^\/ui(?=\/|\?|$)/, '') || '/'
}

/**
 * Guards the buttons of the browser. Called before the router listens: on `window`, listeners are called in the
 * order of their registration.
 */
export function guardHistory(): void {
  window.addEventListener('popstate', (event) => {
    if (block === undefined || location.pathname === new URL(block.address).pathname) return
    const target = location.pathname + location.search
    // The browser has already changed the address: it is put back before the router sees the event.
    event.stopImmediatePropagation()
    history.pushState(null, '', block.address)
    block.ask(withoutBase(target))
  })
}
