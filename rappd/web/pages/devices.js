/** Devices: phones that joined, and letting one join by a QR code. */

import { devicesView } from "../components/devices/devices-view.js";
import { operatorPage } from "../components/layout/operator-page.js";

export const mount = operatorPage("Devices", "see phones and let one join", devicesView);
