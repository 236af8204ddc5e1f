import { Check, Copy } from 'lucide-react'
import { useEffect, useState } from 'react'
import { Button } from './button.tsx'
import { IconButton } from './icon-button.tsx'

type CopyButtonProps = { text: string; label?: string; withText?: boolean }

/** Copies a text to the clipboard and confirms it for two seconds. */
export function CopyButton({ text, label = 'Copy', withText = false }: CopyButtonProps) {
  const [outcome, setOutcome] = useState<'copied' | 'failed'>()
  useEffect(() => {
    if (outcome === undefined) return
    const timer = setTimeout(() => setOutcome(undefined), 2_000)
    return () => clearTimeout(timer)
  }, [outcome])
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text)
      setOutcome('copied')
    } catch {
      // The clipboard needs HTTPS or a loopback address, and the permission of the user.
      setOutcome('failed')
    }
  }
  const shown = outcome === 'copied' ? 'Copied' : outcome === 'failed' ? 'Copying was refused' : label
  return (
    <>
      {withText ? (
        <Button icon={outcome === 'copied' ? Check : Copy} onClick={copy}>
          {shown}
        </Button>
      ) : (
        <IconButton icon={outcome === 'copied' ? Check : Copy} label={shown} onClick={copy} />
      )}
      <span className="sr-only" role="status">
        {outcome && shown}
      </span>
    </>
  )
}
