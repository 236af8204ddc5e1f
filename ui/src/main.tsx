import { setNonce } from 'get-nonce'
import { createRoot } from 'react-dom/client'
import { App } from './app/app.tsx'
import { cspNonce } from './app/csp-nonce.ts'
import { applyStoredTheme } from './app/theme.ts'
import { guardHistory } from './save/unsaved.tsx'
import './styles/styles.css'

applyStoredTheme()
guardHistory()
// Dialogs add a style element that locks scrolling.
setNonce(cspNonce())

const root = document.getElementById('root')
if (root) createRoot(root).render(<App />)
